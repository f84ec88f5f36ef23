/* Digits of elements: parts of so few bits that a double holds the sum of all of one place. */
#ifndef FASTPOOL_DIGITS_H
#define FASTPOOL_DIGITS_H

#include "quotients.h"

/* What to take of an element. */
enum { DIGIT, WORD, IS_UPPER, IS_LOWER, IS_NAN };

typedef struct {
    int what;
    double scale;        /* DIGIT: of x * scale what is a multiple of `unit`, */
    double above, unit;  /* without what is a multiple of `above`, if that is not 0 */
    int shift;           /* WORD: the 16 bits of an integer from this one on */
    int last;            /* WORD: is it the highest, which has the sign? */
} part_t;

/* The range of the elements seen so far. */
typedef struct {
    double most, least; /* magnitudes, the least but 0; inf if there is none */
    int infinite, nan;
} range_t;

/* Return x rounded to a multiple of unit, where it has digits below. */
INLINE double round_to(double x, double unit) {
    double c = x < 0 ? -0x1p52 * unit : 0x1p52 * unit;
    return absolute(x) < 0x1p52 * unit ? (x + c) - c : x;
}
INLINE vec_f64 wide_round_to(vec_f64 x, double unit) {
    const vec_u64 sign = (vec_u64){0} + 0x8000000000000000ULL;
    vec_f64 c = (vec_f64)(((vec_u64)x & sign) | (vec_u64)(0x1p52 * unit - (vec_f64){0}));
    vec_u64 inside = (vec_u64)((vec_f64)((vec_u64)x & ~sign) < 0x1p52 * unit - (vec_f64){0});
    return (vec_f64)(((vec_u64)((x + c) - c) & inside) | ((vec_u64)x & ~inside));
}

INLINE double part_of_float(double x, const part_t *part) {
    int finite = x - x == 0;
    switch (part->what) {
    case IS_UPPER: return !finite && !(x < 0);
    case IS_LOWER: return !finite && !(x > 0);
    case IS_NAN: return x != x;
    }
    x = finite ? x * part->scale : 0;
    return part->above ? round_to(x, part->unit) - round_to(x, part->above)
                       : round_to(x, part->unit);
}
INLINE vec_t wide_part_of_float(vec_f64 x, const part_t *part) {
    const vec_u64 one = (vec_u64)(1.0 - (vec_f64){0});
    vec_u64 finite = (vec_u64)(x - x == (vec_f64){0});
    vec_f64 rounded;
    switch (part->what) {
    case IS_UPPER: return (vec_t)(~finite & ~(vec_u64)(x < (vec_f64){0}) & one);
    case IS_LOWER: return (vec_t)(~finite & ~(vec_u64)(x > (vec_f64){0}) & one);
    case IS_NAN: return (vec_t)((vec_u64)(x != x) & one);
    }
    x = (vec_f64)((vec_u64)x & finite) * part->scale;
    rounded = wide_round_to(x, part->unit);
    return (vec_t)(part->above ? rounded - wide_round_to(x, part->above) : rounded);
}

#define PARTS_OF_FLOATS(name, T)                                                                  \
    INLINE double part_##name(const T *p, const part_t *part) {                                   \
        return part_of_float(as_double(p), part);                                                 \
    }                                                                                             \
    INLINE vec_t wide_part_##name(const T *p, const part_t *part) {                               \
        return wide_part_of_float((vec_f64)wide_##name(p), part);                                 \
    }
PARTS_OF_FLOATS(f16, float16_t_) PARTS_OF_FLOATS(bf16, bfloat16_t_)
PARTS_OF_FLOATS(f32, float) PARTS_OF_FLOATS(f64, double)

#define PARTS_OF_INTEGERS(name, T)                                                                \
    INLINE double part_##name(const T *p, const part_t *part) {                                   \
        int64_t word = (int64_t)(*p >> part->shift);                                              \
        return part->last ? (double)(T)(*p >> part->shift) : (double)(word & 0xffff);             \
    }                                                                                             \
    INLINE vec_t wide_part_##name(const T *p, const part_t *part) {                               \
        vec_f64 v;                                                                                \
        for (int i = 0; i < WIDE; i++) v[i] = part_##name(p + i, part);                           \
        return (vec_t)v;                                                                          \
    }
PARTS_OF_INTEGERS(i8, int8_t) PARTS_OF_INTEGERS(u8, uint8_t)
PARTS_OF_INTEGERS(i16, int16_t) PARTS_OF_INTEGERS(u16, uint16_t)
PARTS_OF_INTEGERS(i32, int32_t) PARTS_OF_INTEGERS(u32, uint32_t)
PARTS_OF_INTEGERS(i64, int64_t) PARTS_OF_INTEGERS(u64, uint64_t)
INLINE double part_bool(const bool_t_ *p, const part_t *part) {
    (void)part;
    return as_double_bool(*p);
}
INLINE vec_t wide_part_bool(const bool_t_ *p, const part_t *part) {
    (void)part;
    return wide_bool(p);
}
#define part_of(p, which) BY_ELEMENT(part, p)(p, which)
#define wide_part_of(p, which) BY_ELEMENT(wide_part, p)(p, which)

/* Note n elements. */
INLINE void note_one(range_t *range, double x) {
    double a = absolute(x);
    if (x != x)
        range->nan = 1;
    else if (a - a != 0)
        range->infinite = 1;
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
#define NOTE(name, T)                                                                             \
    static void note_##name(range_t *range, const T *p, ptrdiff_t n) {                            \
        const vec_i64 size = (vec_i64){0} + INT64_MAX; /* all bits but the sign's */              \
        vec_i64 most = {0}, least = size;                                                         \
        int64_t high = 0, low = INT64_MAX;                                                        \
        ptrdiff_t i = 0;                                                                          \
        for (; i + WIDE <= n; i += WIDE) {                                                        \
            vec_i64 bits = (vec_i64)wide_##name(p + i) & size;                                    \
            most = larger_i64(most, bits);                                                        \
            least = smaller_i64(least, (bits - 1) & size); /* (of 0 it is the largest) */         \
        }                                                                                         \
        for (int j = 0; j < WIDE; j++) {                                                          \
            if (most[j] > high) high = most[j];                                                   \
            if (least[j] < low) low = least[j];                                                   \
        }                                                                                         \
        if (high >= 0x7ff0000000000000) /* an infinity or NaN */                                  \
            i = 0;                                                                                \
        else if (high) {                                                                          \
            note_one(range, f64_of_bits((uint64_t)high));                                         \
            note_one(range, f64_of_bits((uint64_t)low + 1));                                      \
        }                                                                                         \
        for (; i < n; i++) note_one(range, as_double(p + i));                                     \
    }
NOTE(f16, float16_t_) NOTE(bf16, bfloat16_t_) NOTE(f32, float) NOTE(f64, double)
NOTE(i8, int8_t) NOTE(u8, uint8_t) NOTE(i16, int16_t) NOTE(u16, uint16_t)
NOTE(i32, int32_t) NOTE(u32, uint32_t) NOTE(i64, int64_t) NOTE(u64, uint64_t) NOTE(bool, bool_t_)
#define note_elements(range, p, n) BY_ELEMENT(note, p)(range, p, n)

/* Split n elements into multiples of a unit and what is below; a vector after them may be
 * overwritten. Return the largest magnitude, or `most`; of a NaN inf. Fetch what is `ahead`. */
static double split_digits(double *high, double *low, const double *p, ptrdiff_t n, double unit,
                           double most, ptrdiff_t ahead) {
    const vec_i64 size = (vec_i64){0} + INT64_MAX;
    const vec_f64 c = 0x1.8p52 * unit - (vec_f64){0};
    vec_i64 largest = {0};
    int64_t bits = (int64_t)f64_bits(most);
    for (ptrdiff_t i = 0; i < n; i += WIDE) {
        vec_f64 v = (vec_f64)load_some(p + i, n - i), digit = (v + c) - c;
        __builtin_prefetch(p + i + ahead);
        vec_store(high + i, (vec_t)digit);
        vec_store(low + i, (vec_t)(v - digit));
        largest = larger_i64(largest, (vec_i64)v & size);
    }
    for (int j = 0; j < WIDE; j++)
        if (largest[j] > bits) bits = largest[j];
    return bits < 0x7ff0000000000000 ? f64_of_bits((uint64_t)bits) : INFINITY;
}

/* Add n sums, each times a scale, to the numbers high + low + rest. */
/* Return r with its last bit set where `below`, of what comes after it, is not 0. */
INLINE vec_f64 made_odd(vec_f64 r, vec_f64 below) {
    const vec_f64 zero = {0};
    vec_u64 bits = (vec_u64)r, even = ~bits & 1, some = (vec_u64)(below != zero);
    vec_u64 back = (vec_u64)(below > zero) ^ (vec_u64)(r > zero); /* all bits, or none */
    return (vec_f64)(bits + ((back | 1) & some & (0 - even)));
}

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
