/* Digits of doubles: parts of so few bits that a double holds the sum of all of one place. */
#ifndef FASTPOOL_DIGITS_H
#define FASTPOOL_DIGITS_H

#include "quotients.h"

/* What to take of an element: what of x * scale is a multiple of `unit`, without what is one of
 * `above`, if that is not 0. Of infinities and NaN nothing; or if `wild`, only these. */
typedef struct {
    double scale, above, unit;
    int quick; /* all are finite, and less than 2**51 * above, or than 2**51 * unit if that is 0 */
    int wild;
} part_t;

/* The range of the elements seen so far. */
typedef struct {
    double most, least; /* magnitudes, the least but 0; inf if there is none */
    int wild;           /* was there an infinity or NaN? */
} range_t;

/* Return x rounded to a multiple of unit, where it has digits below. */
INLINE vec_f64 wide_round_to(vec_f64 x, double unit) {
    const vec_u64 sign = (vec_u64){0} + 0x8000000000000000ULL;
    vec_f64 c = (vec_f64)(((vec_u64)x & sign) | (vec_u64)(0x1p52 * unit - (vec_f64){0}));
    vec_u64 inside = (vec_u64)((vec_f64)((vec_u64)x & ~sign) < 0x1p52 * unit - (vec_f64){0});
    return (vec_f64)(((vec_u64)((x + c) - c) & inside) | ((vec_u64)x & ~inside));
}
INLINE vec_f64 part_of(vec_f64 x, const part_t *part, const int quick) {
    const vec_f64 c = 0x1.8p52 * part->unit - (vec_f64){0};
    const vec_f64 d = 0x1.8p52 * part->above - (vec_f64){0};
    vec_u64 finite;
    vec_f64 rounded;
    if (quick) { /* (adding 1.5 * 2**52 units rounds to a multiple of the unit) */
        if (part->above) x -= (x + d) - d;
        return (x + c) - c;
    }
    finite = (vec_u64)(x - x == (vec_f64){0});
    if (part->wild) return (vec_f64)((vec_u64)x & ~finite);
    x = (vec_f64)((vec_u64)x & finite) * part->scale;
    rounded = wide_round_to(x, part->unit);
    return part->above ? rounded - wide_round_to(x, part->above) : rounded;
}

/* Set n doubles to the parts of others. */
INLINE void take_parts_by(double *to, const double *x, ptrdiff_t n, const part_t *part,
                          const int quick) {
    ptrdiff_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        vec_store(to + i, (vec_t)part_of((vec_f64)vec_load(x + i), part, quick));
    if (i < n) {
        vec_f64 v = part_of((vec_f64)load_some(x + i, n - i), part, quick);
        for (int j = 0; i < n; i++, j++) to[i] = v[j];
    }
}
static void take_parts(double *to, const double *x, ptrdiff_t n, const part_t *part) {
    const part_t known = *part; /* (stores cannot change it) */
    if (part->quick)
        take_parts_by(to, x, n, &known, 1);
    else
        take_parts_by(to, x, n, &known, 0);
}

/* Note n doubles. */
INLINE void note_one(range_t *range, double x) {
    double a = absolute(x);
    if (a - a != 0)
        range->wild = 1;
    else {
        if (a > range->most) range->most = a;
        if (a && a < range->least) range->least = a;
    }
}
#if VEC_BYTES == 64
INLINE vec_i64 larger_i64(vec_i64 a, vec_i64 b) {
    return (vec_i64)_mm512_max_epi64((__m512i)a, (__m512i)b);
}
INLINE vec_i64 smaller_i64(vec_i64 a, vec_i64 b) {
    return (vec_i64)_mm512_min_epi64((__m512i)a, (__m512i)b);
}
#else
INLINE vec_i64 larger_i64(vec_i64 a, vec_i64 b) {
    vec_i64 above = (vec_i64)(a > b);
    return (a & above) | (b & ~above);
}
INLINE vec_i64 smaller_i64(vec_i64 a, vec_i64 b) { return ~larger_i64(~a, ~b); }
#endif
static void note(range_t *range, const double *p, ptrdiff_t n) {
    const vec_i64 size = (vec_i64){0} + INT64_MAX; /* all bits but the sign's */
    vec_i64 most = {0}, least = size;
    int64_t high = 0, low = INT64_MAX;
    ptrdiff_t i = 0;
    for (; i + WIDE <= n; i += WIDE) {
        vec_i64 bits = (vec_i64)vec_load(p + i) & size;
        most = larger_i64(most, bits);
        least = smaller_i64(least, (bits - 1) & size); /* (of 0 it is the largest) */
    }
    for (int j = 0; j < WIDE; j++) {
        if (most[j] > high) high = most[j];
        if (least[j] < low) low = least[j];
    }
    if (high >= 0x7ff0000000000000) /* an infinity or NaN */
        i = 0;
    else if (high) {
        note_one(range, f64_of_bits((uint64_t)high));
        note_one(range, f64_of_bits((uint64_t)low + 1));
    }
    for (; i < n; i++) note_one(range, p[i]);
}

/* Return r with its last bit set where `below`, of what comes after it, is not 0. */
INLINE vec_f64 made_odd(vec_f64 r, vec_f64 below) {
    const vec_f64 zero = {0};
    vec_u64 bits = (vec_u64)r, even = ~bits & 1, some = (vec_u64)(below != zero);
    vec_u64 back = (vec_u64)(below > zero) ^ (vec_u64)(r > zero); /* all bits, or none */
    return (vec_f64)(bits + ((back | 1) & some & (0 - even)));
}

/* Add n sums, each times a scale, to the numbers high + low + rest. */
static void add_to_sums(double *high, double *low, double *rest, const double *sums, double scale,
                        ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += WIDE) {
        ptrdiff_t count = n - i < WIDE ? n - i : WIDE;
        vec_f64 h = (vec_f64)load_some(high + i, count), l = (vec_f64)load_some(low + i, count);
        vec_f64 r = (vec_f64)load_some(rest + i, count), error, last;
        vec_f64 more = (vec_f64)load_some(sums + i, count) * scale;
        TWO_SUM(h, more, h, error)
        TWO_SUM(l, error, l, error)
        TWO_SUM(r, error, r, last)
        if (vec_any((vec_t)(last != (vec_f64){0}))) r = made_odd(r, last);
        if (count == WIDE) {
            vec_store(high + i, (vec_t)h);
            vec_store(low + i, (vec_t)l);
            vec_store(rest + i, (vec_t)r);
        } else
            for (ptrdiff_t j = 0; j < count; j++)
                high[i + j] = h[j], low[i + j] = l[j], rest[i + j] = r[j];
    }
}

#endif
