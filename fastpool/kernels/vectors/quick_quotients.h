/* Quotients of sums by small divisors, rounded once, in two operations.
 *
 * A divisor's reciprocal is high + low. The first has so few bits that its product with a sum is
 * exact if the quotient is in the middle of two results, or a result: such a quotient has few bits,
 * and the sum has at most those of the divisor more. So it is the quotient here as well. All others
 * are farther from a middle than the error here, and so they end on the right side of it:
 *
 * - Of floats, a middle has 25 bits. If the sum has at most 50 bits, the distance is more than
 *   2**-50 of the quotient. The error is at most 2**-52.
 * - Of integers, the distance is at least 1 / (2 * divisor). `split_reciprocal` refuses divisors
 *   that are too large for that. */
#ifndef FASTPOOL_QUICK_QUOTIENTS_H
#define FASTPOOL_QUICK_QUOTIENTS_H

#include "quotients.h"

#if defined(__FMA__) || defined(__aarch64__)
#define HAS_FMA 1
#else
#define HAS_FMA 0
#endif

enum { LOW_BITS = 7 }; /* of a sum: the last three of 53 */

/* Set the parts of 1 / d. Results have at most `result_bits` bits, sums are of `bits` bits: floats
 * or doubles. Return whether d is small enough. */
static int split_reciprocal(double d, int result_bits, int bits, double *high, double *low) {
    double odd = d;
    uint64_t mask;
    int left = bits - result_bits - 1;
    if (!(d >= 1 && d < 0x1p50)) return 0;
    if (result_bits != 24 && d * power_of_two(result_bits) >= power_of_two(bits - 3))
        return 0; /* (integers: the error must be below 1 / (2 * d)) */
    while (nearest_int(odd * 0.5) * 2 == odd) odd *= 0.5;
    while (odd >= 1) odd *= 0.5, left--;
    if (left < 1) return 0;
    *high = 1 / d;
    mask = ~0ULL << (53 - left) & f64_bits(*high);
    BITS_OF(*high, mask);
    *low = (1 - *high * d) / d; /* (the product and the difference are exact) */
    if (*low == 0) *low = *high * 0x1p-80; /* (infinity times 0 would be NaN) */
    return 1;
}

/* ---- quotients of a vector of sums, in double or float ---- */

#if VEC_BYTES == 64
#define MULTIPLY_ADD_f64(a, b, c) (vec_f64)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#define MULTIPLY_ADD_f32(a, b, c) (vec_f32)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#elif VEC_BYTES == 32
#define MULTIPLY_ADD_f64(a, b, c) (vec_f64)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#define MULTIPLY_ADD_f32(a, b, c) (vec_f32)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#elif defined(__aarch64__)
#define MULTIPLY_ADD_f64(a, b, c)                                                                 \
    (vec_f64)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#define MULTIPLY_ADD_f32(a, b, c)                                                                 \
    (vec_f32)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#else /* (never run: HAS_FMA is 0) */
#define MULTIPLY_ADD_f64(a, b, c) ((a) * (b) + (c))
#define MULTIPLY_ADD_f32(a, b, c) ((a) * (b) + (c))
#endif
/* (Adding 0 makes 0 of -0.) */
#define QUICK_QUOTIENTS(type, sum, high, low)                                                     \
    MULTIPLY_ADD_##type(sum, low, MULTIPLY_ADD_##type(sum, high, (vec_##type){0}))

/* ---- as floats ---- */

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

/* ---- as integers: the low bits of a number whose unit is 1 ---- */

#define DEFINE_ROUND_QUICK(type, MAGIC_NUMBER)                                                    \
    INLINE vec_##type round_quick_##type(vec_##type q, int rounding) {                            \
        const vec_##type magic = MAGIC_NUMBER - (vec_##type){0}, zero = {0};                      \
        vec_##type k = (q + magic) - magic;                                                       \
        /* (a comparison that holds is -1) */                                                     \
        if (rounding == HALF_AWAY) {                                                              \
            k -= __builtin_convertvector((q - k == 0.5) & (q > zero), vec_##type);                \
            k += __builtin_convertvector((k - q == 0.5) & (q < zero), vec_##type);                \
        } else if (rounding == FLOOR)                                                             \
            k += __builtin_convertvector(k > q, vec_##type);                                      \
        else if (rounding == TRUNC) {                                                             \
            k += __builtin_convertvector((k > q) & (q > zero), vec_##type);                       \
            k -= __builtin_convertvector((k < q) & (q < zero), vec_##type);                       \
        }                                                                                         \
        return k + magic;                                                                         \
    }
DEFINE_ROUND_QUICK(f32, 0x1.8p23f) DEFINE_ROUND_QUICK(f64, 0x1.8p52)

typedef VECTOR(uint8_t, 8) bytes_8;
typedef VECTOR(uint8_t, 16) bytes_16;
typedef VECTOR(uint16_t, 16) halves_8;
typedef VECTOR(uint16_t, 32) halves_16;
typedef VECTOR(uint32_t, 16) words_4;
typedef VECTOR(uint32_t, 32) words_8;
typedef VECTOR(uint8_t, 4) bytes_4;
typedef VECTOR(uint8_t, 2) bytes_2;
typedef VECTOR(uint16_t, 8) halves_4;
typedef VECTOR(uint16_t, 4) halves_2;
typedef VECTOR(uint32_t, 8) words_2;
/* The low bits of integers. (gcc's conversions of vectors take many times as long.) */
#if VEC_BYTES == 64
#define LOW_8_f32(v) (bytes_16)_mm512_cvtepi32_epi8((__m512i)(v))
#define LOW_16_f32(v) (halves_16)_mm512_cvtepi32_epi16((__m512i)(v))
#define LOW_8_f64(v) low_8_of_8((__m512i)(v))
#define LOW_16_f64(v) (halves_8)_mm512_cvtepi64_epi16((__m512i)(v))
#define LOW_32_f64(v) (words_8)_mm512_cvtepi64_epi32((__m512i)(v))
INLINE bytes_8 low_8_of_8(__m512i v) {
    bytes_8 low;
    __m128i all = _mm512_cvtepi64_epi8(v);
    memcpy(&low, &all, 8);
    return low;
}
#elif VEC_BYTES == 32
INLINE __m128i low_halves(__m256i v) { /* of 32-bit integers */
    const __m256i low = _mm256_setr_epi64x(0x0d0c090805040100, -1, 0x0d0c090805040100, -1);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, low), 0x08));
}
INLINE bytes_8 low_bytes(__m256i v) {
    const __m256i low = _mm256_setr_epi64x(
        (int64_t)0xffffffff0c080400, -1, 0x0c080400ffffffff, -1);
    bytes_8 of;
    v = _mm256_shuffle_epi8(v, low);
    __m128i both = _mm_or_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    memcpy(&of, &both, 8);
    return of;
}
INLINE words_4 low_words(__m256i v) { /* of 64-bit integers */
    return (words_4)_mm256_castsi256_si128(
        _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}
#define LOW_8_f32(v) low_bytes((__m256i)(v))
#define LOW_16_f32(v) (halves_8)low_halves((__m256i)(v))
#define LOW_8_f64(v) __builtin_convertvector(low_words((__m256i)(v)), bytes_4)
#define LOW_16_f64(v) __builtin_convertvector(low_words((__m256i)(v)), halves_4)
#define LOW_32_f64(v) low_words((__m256i)(v))
#else
#define LOW_8_f32(v) __builtin_convertvector((vec_u32)(v), bytes_4)
#define LOW_16_f32(v) __builtin_convertvector((vec_u32)(v), halves_4)
#define LOW_8_f64(v) __builtin_convertvector((vec_u64)(v), bytes_2)
#define LOW_16_f64(v) __builtin_convertvector((vec_u64)(v), halves_2)
#define LOW_32_f64(v) __builtin_convertvector((vec_u64)(v), words_2)
#endif

/* ---- n quotients; return 0 if results may be wrong ---- */

typedef struct {
    const char *sums;
    ptrdiff_t sums_pitch, pitch; /* bytes from one row to the next, of sums and of results */
    ptrdiff_t rows, n;
    const void *high, *low; /* parts of the reciprocals: of all sums, or of each one of a row and a
                             * vector after them; of the type of sums */
    int one;                /* of all */
    int rounding;           /* of integers */
} quick_t;

/* Divide the sums from i on, and store `count` results. */
#define QUICK_STEP(sum_t, type, LOAD, RESULTS, count)                                             \
    vec_##type sum = (vec_##type)LOAD;                                                            \
    vec_##type high = (vec_##type)vec_load(highs + (i & each));                                   \
    vec_##type low = (vec_##type)vec_load(lows + (i & each));                                     \
    vec_##type q = QUICK_QUOTIENTS(type, sum, high, low);                                         \
    RESULTS                                                                                       \
    memcpy(y + i, &results, (size_t)(count) * sizeof *y);                                         \
    seen |= (vec_t)sum;
#define QUICK_LOOP(sum_t, type, T, RESULTS)                                                       \
    const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(sum_t);                                 \
    const int flat = d->one && d->pitch == d->n * (ptrdiff_t)sizeof(T) &&                         \
        d->sums_pitch == d->n * (ptrdiff_t)sizeof(sum_t); /* rows are one */                      \
    const ptrdiff_t n = flat ? d->rows * d->n : d->n, rows = flat ? 1 : d->rows;                  \
    const sum_t *highs = (const sum_t *)d->high, *lows = (const sum_t *)d->low;                   \
    const ptrdiff_t each = d->one ? 0 : -1;                                                       \
    const vec_##type same[2] = {*highs - (vec_##type){0}, *lows - (vec_##type){0}};               \
    if (!each) highs = (const sum_t *)&same[0], lows = (const sum_t *)&same[1];                   \
    vec_t seen = {0};                                                                             \
    for (ptrdiff_t r = 0; r < rows; r++) {                                                        \
        const sum_t *sums = (const sum_t *)(d->sums + r * d->sums_pitch);                         \
        T *y = (T *)((char *)to + r * d->pitch);                                                  \
        ptrdiff_t i = 0;                                                                          \
        for (; i + lanes <= n; i += lanes) {                                                      \
            QUICK_STEP(sum_t, type, vec_load(sums + i), RESULTS, lanes)                           \
        }                                                                                         \
        if (i < n && n >= lanes) { /* (some are divided again) */                                 \
            i = n - lanes;                                                                        \
            QUICK_STEP(sum_t, type, vec_load(sums + i), RESULTS, lanes)                           \
        } else if (i < n) {                                                                       \
            QUICK_STEP(sum_t, type, vec_load_part(sums + i, (size_t)(n - i) * sizeof(sum_t)),     \
                       RESULTS, n - i)                                                            \
        }                                                                                         \
    }

#define DEFINE_QUICK_FLOATS(name, T)                                                              \
    static int quick_divide_##name(void *to, const quick_t *d) {                                  \
        QUICK_LOOP(double, f64, T, __typeof__(quick_##name(q)) results = quick_##name(q);)        \
        return !vec_any((vec_t)((vec_u64)seen & LOW_BITS));                                       \
    }
DEFINE_QUICK_FLOATS(f32, float) DEFINE_QUICK_FLOATS(f16, uint16_t)
DEFINE_QUICK_FLOATS(bf16, uint16_t)

/* (Signed and unsigned integers have the same bits. Sums of doubles are below 2**51.) */
#define DEFINE_QUICK_INTEGERS(name, T, sum_t, type, LOW)                                          \
    INLINE void quick_round_##name(void *to, const quick_t *d, int rounding) {                    \
        QUICK_LOOP(sum_t, type, T, __typeof__(LOW##_##type(q)) results =                          \
            LOW##_##type(round_quick_##type(q, rounding));)                                       \
        (void)seen;                                                                               \
    }                                                                                             \
    static int quick_divide_##name(void *to, const quick_t *d) {                                  \
        if (d->rounding == HALF_EVEN)                                                             \
            quick_round_##name(to, d, HALF_EVEN);                                                 \
        else                                                                                      \
            quick_round_##name(to, d, d->rounding);                                               \
        return 1;                                                                                 \
    }
DEFINE_QUICK_INTEGERS(8_of_floats, uint8_t, float, f32, LOW_8)
DEFINE_QUICK_INTEGERS(16_of_floats, uint16_t, float, f32, LOW_16)
DEFINE_QUICK_INTEGERS(8, uint8_t, double, f64, LOW_8)
DEFINE_QUICK_INTEGERS(16, uint16_t, double, f64, LOW_16)
DEFINE_QUICK_INTEGERS(32, uint32_t, double, f64, LOW_32)

#endif
