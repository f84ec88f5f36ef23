/* AVX2: vectors of 32 bytes on x86-64. The order is vector.h's. */
#ifndef FASTPOOL_AVX2_H
#define FASTPOOL_AVX2_H

#include <immintrin.h>

#define VEC_BYTES 32
#define VEC_MASKS 0
#include "portable.h"

/* ---- load and store in part ---- */

DEFINE_PARTS(COPY_PIECE(16))
DEFINE_MASKED_BY_BYTES

/* ---- maximum ---- */

MAX_BY_INTRINSIC(f32, __m256, _mm256_max_ps)
MAX_BY_INTRINSIC(f64, __m256d, _mm256_max_pd)
MAX_BY_INTRINSIC(i8, __m256i, _mm256_max_epi8)
MAX_BY_INTRINSIC(u8, __m256i, _mm256_max_epu8)
MAX_BY_INTRINSIC(i16, __m256i, _mm256_max_epi16)
MAX_BY_INTRINSIC(u16, __m256i, _mm256_max_epu16)
MAX_BY_INTRINSIC(i32, __m256i, _mm256_max_epi32)
MAX_BY_INTRINSIC(u32, __m256i, _mm256_max_epu32)
MAX_BY_COMPARE(i64)
MAX_BY_COMPARE(u64)
MAX_BY_INTRINSIC(min_f32, __m256, _mm256_min_ps)
MAX_BY_INTRINSIC(min_f64, __m256d, _mm256_min_pd)
MAX_BY_INTRINSIC(min_u8, __m256i, _mm256_min_epu8)
MAX_BY_INTRINSIC(min_u16, __m256i, _mm256_min_epu16)
DEFINE_NARROW_MAX_BY_SSE41

/* ---- even and odd elements, and one element on ---- */

INLINE vec_t vec_concat_even_1(vec_t lo, vec_t hi) {
    const __m256i low = _mm256_set1_epi16(0xff);
    __m256i a = _mm256_and_si256((__m256i)lo, low), b = _mm256_and_si256((__m256i)hi, low);
    return (vec_t)_mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
}
INLINE vec_t vec_concat_even_2(vec_t lo, vec_t hi) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    __m256i a = _mm256_and_si256((__m256i)lo, low), b = _mm256_and_si256((__m256i)hi, low);
    return (vec_t)_mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
}
/* (In each half, then the halves: gcc takes six operations for a shuffle.) */
#define HALVES_IN_ORDER(v) (vec_t)_mm256_permute4x64_epi64((__m256i)(v), 0xd8)
INLINE vec_t vec_concat_even_4(vec_t lo, vec_t hi) {
    return HALVES_IN_ORDER(_mm256_shuffle_ps((__m256)lo, (__m256)hi, 0x88));
}
INLINE vec_t vec_concat_odd_4(vec_t lo, vec_t hi) {
    return HALVES_IN_ORDER(_mm256_shuffle_ps((__m256)lo, (__m256)hi, 0xdd));
}
INLINE vec_t vec_concat_even_8(vec_t lo, vec_t hi) {
    return HALVES_IN_ORDER(_mm256_unpacklo_pd((__m256d)lo, (__m256d)hi));
}
INLINE vec_t vec_concat_odd_8(vec_t lo, vec_t hi) {
    return HALVES_IN_ORDER(_mm256_unpackhi_pd((__m256d)lo, (__m256d)hi));
}
#define MIDDLE_HALVES(a, b) _mm256_permute2x128_si256((__m256i)(a), (__m256i)(b), 0x21)
#define SHIFT_IN(a, b, n) ((vec_t)_mm256_alignr_epi8(MIDDLE_HALVES(a, b), (__m256i)(a), n))
SHIFT_IN_BY(SHIFT_IN)
#define vec_shift(a, b, n)                                                                        \
    ((n) == 0    ? (a)                                                                            \
     : (n) < 16  ? SHIFT_IN(a, b, (n) & 15)                                                       \
     : (n) == 16 ? (vec_t)MIDDLE_HALVES(a, b)                                                     \
     : (n) < 32  ? (vec_t)_mm256_alignr_epi8((__m256i)(b), MIDDLE_HALVES(a, b), (n) & 15)         \
                 : (b))

/* ---- comparison and selection ---- */

DEFINE_GT_BY_COMPARE
INLINE vec_t vec_select_i16(vec_mask m, vec_t a, vec_t b) {
    return (vec_t)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m);
}
DEFINE_WIDER_SELECTS

/* ---- the NaN flag ---- */

DEFINE_FLAG_AS_VECTOR
INLINE vec_flag nan_in_f32(vec_t a, vec_t b) {
    return (vec_t)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
}
INLINE vec_flag nan_in_f64(vec_t a, vec_t b) {
    return (vec_t)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q);
}

/* ---- positions as 64-bit integers ---- */

INLINE void vec_widen_i16(vec_t v, vec_t *to) {
    __m128i low = _mm256_castsi256_si128((__m256i)v);
    __m128i high = _mm256_extracti128_si256((__m256i)v, 1);
    to[0] = (vec_t)_mm256_cvtepu16_epi64(low);
    to[1] = (vec_t)_mm256_cvtepu16_epi64(_mm_srli_si128(low, 8));
    to[2] = (vec_t)_mm256_cvtepu16_epi64(high);
    to[3] = (vec_t)_mm256_cvtepu16_epi64(_mm_srli_si128(high, 8));
}
INLINE void vec_widen_i32(vec_t v, vec_t *to) {
    to[0] = (vec_t)_mm256_cvtepu32_epi64(_mm256_castsi256_si128((__m256i)v));
    to[1] = (vec_t)_mm256_cvtepu32_epi64(_mm256_extracti128_si256((__m256i)v, 1));
}

#endif
