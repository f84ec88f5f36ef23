/* Quotients of sums by small divisors, rounded once, in two operations.
 *
 * A divisor's reciprocal is high + low. The first has so few bits that its product with a sum is
 * exact if the quotient is the middle of two floats: such a sum has at most the 25 bits of the
 * middle more than the divisor has. So a quotient that is a middle is one here as well. Any other
 * quotient of a sum of at most 50 bits is more than 2**-50 of itself away from every middle, and
 * the error here is at most 2**-52. So it is on the right side. */
#ifndef FASTPOOL_QUICK_QUOTIENTS_H
#define FASTPOOL_QUICK_QUOTIENTS_H

#include "quotients.h"

#if defined(__FMA__) || defined(__aarch64__)
#define HAS_FMA 1
#else
#define HAS_FMA 0
#endif

enum { MOST_DIVISOR_BITS = 14, LOW_BITS = 7 }; /* the last three bits of a sum */

/* Set the parts of 1 / d. Return whether d is small enough. */
static int split_reciprocal(double d, double *high, double *low) {
    double odd = absolute(d);
    uint64_t mask;
    int bits = 0;
    if (!(odd >= 1 && odd < 0x1p50)) return 0;
    while (nearest_int(odd * 0.5) * 2 == odd) odd *= 0.5;
    while (power_of_two(bits) <= odd)
        if (++bits > MOST_DIVISOR_BITS) return 0;
    mask = ~0ULL << (52 - (27 - bits));
    *high = 1 / d;
    mask &= f64_bits(*high);
    BITS_OF(*high, mask);
    *low = (1 - *high * d) / d; /* (the product and the difference are exact) */
    if (*low == 0) *low = *high * 0x1p-80; /* (infinity times 0 would be NaN) */
    return 1;
}

INLINE vec_f64 multiply_add(vec_f64 a, vec_f64 b, vec_f64 c) {
#if VEC_BYTES == 64
    return (vec_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif VEC_BYTES == 32
    return (vec_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
    return (vec_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c; /* (not used: HAS_FMA is 0) */
#endif
}

/* What becomes of WIDE quotients. */
typedef VECTOR(uint16_t, VEC_BYTES / 4) wide_u16s;
typedef VECTOR(uint32_t, VEC_BYTES / 2) wide_u32s;
INLINE wide_f32s quick_f32(vec_f64 q) { return __builtin_convertvector(q, wide_f32s); }
/* Cut off to 24 bits, the last of which is set unless that is exact: rounded again, it is q. */
INLINE wide_f32s quick_odd(vec_f64 q) {
    vec_u64 bits = (vec_u64)q, rest = (bits & 0x1fffffff) + 0x1fffffff;
    return quick_f32((vec_f64)((bits | rest) & ~0x1fffffffULL));
}
INLINE wide_u16s quick_f16(vec_f64 q) {
    wide_f32s odd = quick_odd(q);
    wide_u16s results;
#if VEC_BYTES == 64
    results = (wide_u16s)_mm256_cvtps_ph((__m256)odd, _MM_FROUND_TO_NEAREST_INT);
#elif VEC_BYTES == 32
    __m128i halves = _mm_cvtps_ph((__m128)odd, _MM_FROUND_TO_NEAREST_INT);
    memcpy(&results, &halves, sizeof results);
#else
    for (int i = 0; i < WIDE; i++) results[i] = f16_bits(odd[i]);
#endif
    return results;
}
INLINE wide_u16s quick_bf16(vec_f64 q) {
    wide_f32s odd = quick_odd(q);
    wide_u32s bits = (wide_u32s)odd, rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    wide_u32s nan = (wide_u32s)(odd != odd);
    return __builtin_convertvector((rounded & ~nan) | (nan & 0x7fc0), wide_u16s);
}

/* Divide n sums. If the last bits of a sum are set, results may be wrong: return 0 then. With
 * `one`, all divisors are the same. */
#define DEFINE_QUICK_DIVIDE(name, T)                                                              \
    static int quick_divide_##name(void *to, const double *sums, ptrdiff_t n, const double *high, \
                                   const double *low, int one) {                                  \
        const vec_f64 high0 = *high - (vec_f64){0}, low0 = *low - (vec_f64){0};                   \
        vec_u64 seen = {0};                                                                       \
        T *y = (T *)to;                                                                           \
        ptrdiff_t i = 0;                                                                          \
        if (one)                                                                                  \
            for (; i + WIDE <= n; i += WIDE) {                                                    \
                vec_f64 sum = (vec_f64)vec_load(sums + i);                                        \
                __typeof__(quick_##name(sum)) results = quick_##name(                             \
                    multiply_add(sum, low0, multiply_add(sum, high0, (vec_f64){0})));             \
                memcpy(y + i, &results, sizeof results);                                          \
                seen |= (vec_u64)sum;                                                             \
            }                                                                                     \
        for (; i < n; i += WIDE) {                                                                \
            vec_f64 sum = (vec_f64)load_some(sums + i, n - i);                                    \
            vec_f64 by = one ? high0 : (vec_f64)load_some(high + i, n - i);                       \
            vec_f64 rest = one ? low0 : (vec_f64)load_some(low + i, n - i);                       \
            __typeof__(quick_##name(sum)) results =                                               \
                quick_##name(multiply_add(sum, rest, multiply_add(sum, by, (vec_f64){0})));       \
            memcpy(y + i, &results, (size_t)(n - i < WIDE ? n - i : WIDE) * sizeof(T));           \
            seen |= (vec_u64)sum;                                                                 \
        }                                                                                         \
        return !vec_any((vec_t)(seen & LOW_BITS));                                                \
    }
DEFINE_QUICK_DIVIDE(f32, float) DEFINE_QUICK_DIVIDE(f16, uint16_t)
DEFINE_QUICK_DIVIDE(bf16, uint16_t)

#endif
