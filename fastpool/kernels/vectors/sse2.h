/* SSE2: vectors of 16 bytes on x86-64, the baseline build. The order is vector.h's. */
#ifndef FASTPOOL_SSE2_H
#define FASTPOOL_SSE2_H

#include <immintrin.h>

#define VEC_BYTES 16
#define VEC_MASKS 0
#include "portable.h"

/* ---- load and store in part ---- */

DEFINE_PARTS()
DEFINE_MASKED_BY_BYTES

/* ---- maximum ---- */

MAX_BY_INTRINSIC(f32, __m128, _mm_max_ps)
MAX_BY_INTRINSIC(f64, __m128d, _mm_max_pd)
MAX_BY_COMPARE(i8)
MAX_BY_INTRINSIC(u8, __m128i, _mm_max_epu8)
MAX_BY_INTRINSIC(i16, __m128i, _mm_max_epi16)
MAX_BY_COMPARE(u16)
MAX_BY_COMPARE(i32)
MAX_BY_COMPARE(u32)
MAX_BY_COMPARE(i64)
MAX_BY_COMPARE(u64)
MAX_BY_INTRINSIC(min_f32, __m128, _mm_min_ps)
MAX_BY_INTRINSIC(min_f64, __m128d, _mm_min_pd)
MAX_BY_INTRINSIC(min_u8, __m128i, _mm_min_epu8)
MIN_BY_COMPARE(u16)
#define narrow_max vec_max

/* ---- even and odd elements, and one element on ---- */

INLINE vec_t vec_concat_even_1(vec_t lo, vec_t hi) {
    const __m128i low = _mm_set1_epi16(0xff);
    __m128i a = _mm_and_si128((__m128i)lo, low), b = _mm_and_si128((__m128i)hi, low);
    return (vec_t)_mm_packus_epi16(a, b);
}
INLINE vec_t vec_concat_even_2(vec_t lo, vec_t hi) {
    __m128i a = _mm_srai_epi32(_mm_slli_epi32((__m128i)lo, 16), 16);
    __m128i b = _mm_srai_epi32(_mm_slli_epi32((__m128i)hi, 16), 16);
    return (vec_t)_mm_packs_epi32(a, b);
}
EVEN_BY_SHUFFLE(4, vec_u32, EVEN_4(0))
EVEN_BY_SHUFFLE(8, vec_u64, EVEN_2(0))
ODD_BY_SHUFFLE(4, vec_u32, ODD_4(0))
ODD_BY_SHUFFLE(8, vec_u64, ODD_2(0))
#define SHIFT_IN(a, b, n)                                                                         \
    ((vec_t)_mm_or_si128(_mm_srli_si128((__m128i)a, n), _mm_slli_si128((__m128i)b, 16 - n)))
SHIFT_IN_BY(SHIFT_IN)
#define vec_shift(a, b, n) SHIFT_OF_16(a, b, n, SHIFT_IN)

/* ---- comparison and selection ---- */

DEFINE_GT_BY_COMPARE
DEFINE_SELECT_BY_BITS

/* ---- the NaN flag ---- */

DEFINE_FLAG_AS_VECTOR
INLINE vec_flag nan_in_f32(vec_t a, vec_t b) {
    return (vec_t)_mm_cmpunord_ps((__m128)a, (__m128)b);
}
INLINE vec_flag nan_in_f64(vec_t a, vec_t b) {
    return (vec_t)_mm_cmpunord_pd((__m128d)a, (__m128d)b);
}

/* ---- positions as 64-bit integers ---- */

DEFINE_WIDEN_BY_SHUFFLE

#endif
