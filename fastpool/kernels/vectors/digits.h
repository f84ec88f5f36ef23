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
    double left[WIDE]; /* the largest of what is left of x * scale */
} part_t;
#define LEAST_SHRUNK 0x1p-890 /* which a scale of 2**-128 leaves normal, with all its places */

INLINE double largest(const double *lanes) {
    double most = 0;
    for (int i = 0; i < WIDE; i++)
        if (lanes[i] > most) most = lanes[i];
    return most;
}
/* Return a limit for the magnitude of what is left of elements. 0: nothing. */
static double left_after(const part_t *part) {
    double most = largest(part->left);
    if (part->scale == 1) return most;
    most /= part->scale;
    return most > LEAST_SHRUNK ? most : LEAST_SHRUNK; /* (of less nothing was seen) */
}

/* The range of the elements seen so far. */
typedef struct {
    double most[WIDE]; /* the largest magnitudes that are finite */
    int wild;          /* was there an infinity or NaN? */
} range_t;

INLINE vec_f64 part_of(vec_f64 x, const part_t *part, vec_t *left, const int quick) {
    const vec_f64 c = 0x1.8p52 * part->unit - (vec_f64){0};
    vec_f64 d = (quick ? 0x1.8p52 : 0x1p52) * part->above - (vec_f64){0}, digit;
    if (!quick) { /* (of multiples of 2**52 times what is above, infinities and NaN nothing) */
        const double limit = part->above ? 0x1p52 * part->above / part->scale : INFINITY;
        vec_u64 taken = (vec_u64)(magnitudes(x) < limit - (vec_f64){0});
        if (part->wild) return (vec_f64)((vec_u64)x & ~taken);
        if (part->scale != 1) { /* (products that are subnormal take long) */
            taken &= (vec_u64)(magnitudes(x) >= LEAST_SHRUNK - (vec_f64){0});
            x = (vec_f64)((vec_u64)x & taken) * part->scale;
        } else
            x = (vec_f64)((vec_u64)x & taken);
        d = (vec_f64)((vec_u64)d | ((vec_u64)x & 1ULL << 63));
    }
    if (part->above) x -= (x + d) - d; /* (which rounds to a multiple of what is above) */
    digit = (x + c) - c;
    *left = vec_max_i64(*left, (vec_t)magnitudes(x - digit));
    return digit;
}

/* Set n doubles to the parts of others. */
INLINE void take_parts_by(double *to, const double *x, ptrdiff_t n, part_t *part,
                          const int quick) {
    const part_t known = *part; /* (stores cannot change it) */
    vec_t left = vec_load(part->left);
    ptrdiff_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        vec_store(to + i, (vec_t)part_of((vec_f64)vec_load(x + i), &known, &left, quick));
    if (i < n) {
        vec_f64 v = part_of((vec_f64)load_some(x + i, n - i), &known, &left, quick);
        for (int j = 0; i < n; i++, j++) to[i] = v[j];
    }
    vec_store(part->left, left);
}
static void take_parts(double *to, const double *x, ptrdiff_t n, part_t *part) {
    if (part->quick)
        take_parts_by(to, x, n, part, 1);
    else
        take_parts_by(to, x, n, part, 0);
}

/* Note n doubles. */
INLINE vec_i64 noted(vec_i64 most, const double *p, ptrdiff_t n, const int finite) {
    for (ptrdiff_t i = 0; i < n; i += WIDE) {
        vec_i64 bits = (vec_i64)magnitudes((vec_f64)load_some(p + i, n - i));
        if (finite) bits &= (vec_i64)(bits < 0x7ff0000000000000 - (vec_i64){0});
        most = (vec_i64)vec_max_i64((vec_t)most, (vec_t)bits);
    }
    return most;
}
static void note(range_t *range, const double *p, ptrdiff_t n) {
    const vec_i64 before = (vec_i64)vec_load(range->most);
    vec_i64 most = noted(before, p, n, 0);
    if (vec_any((vec_t)(most >= 0x7ff0000000000000 - (vec_i64){0})))
        range->wild = 1, most = noted(before, p, n, 1);
    vec_store(range->most, (vec_t)most);
}

/* Add n sums, each times a scale, to the numbers high + low + rest. */
static void add_to_sums(double *high, double *low, double *rest, const double *sums, double scale,
                        ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += WIDE) {
        ptrdiff_t count = n - i < WIDE ? n - i : WIDE;
        vec_f64 h = (vec_f64)load_some(high + i, count), l = (vec_f64)load_some(low + i, count);
        vec_f64 r = (vec_f64)load_some(rest + i, count), error, last;
        vec_f64 more = (vec_f64)load_some(sums + i, count) * scale;
        if (!vec_any((vec_t)(more != (vec_f64){0}))) continue;
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
