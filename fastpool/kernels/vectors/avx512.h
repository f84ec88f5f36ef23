/* AVX-512 (F, BW, DQ, VL): vectors of 64 bytes, and masks. The order is vector.h's. */
#ifndef FASTPOOL_AVX512_H
#define FASTPOOL_AVX512_H

#include <immintrin.h>

#define VEC_BYTES 64
#define VEC_MASKS 1
#include "portable.h"

/* ---- load and store in part ---- */

INLINE vec_t vec_load_part(const void *p, size_t n) {
    return (vec_t)_mm512_maskz_loadu_epi8(_bzhi_u64(~0ULL, (unsigned)n), p);
}
INLINE void vec_store_part(void *p, vec_t v, size_t n) {
    _mm512_mask_storeu_epi8(p, _bzhi_u64(~0ULL, (unsigned)n), (__m512i)v);
}
INLINE vec_t vec_masked_load_or(const void *p, byte_mask inside, vec_t outside) {
    return (vec_t)_mm512_mask_loadu_epi8((__m512i)outside, inside, p);
}
/* One bit per element, of the first sixteen. */
INLINE __mmask16 chosen_lanes(uint64_t chosen, size_t size) {
    return (__mmask16)_pext_u64(chosen, size == 1   ? 0xffff
                                        : size == 2 ? 0x55555555
                                        : size == 4 ? 0x1111111111111111
                                                    : 0x0101010101010101);
}
INLINE size_t vec_compress_store(void *p, vec_t v, byte_mask chosen, size_t size, int room) {
    char *to = (char *)p;
    if (size >= 4) {
        __mmask16 some = chosen_lanes(chosen, size);
        __m512i packed = size == 4 ? _mm512_maskz_compress_epi32(some, (__m512i)v)
                                   : _mm512_maskz_compress_epi64((__mmask8)some, (__m512i)v);
        if (room)
            vec_store(to, (vec_t)packed); /* half the time of a masked store */
        else
            vec_store_part(to, (vec_t)packed, (size_t)__builtin_popcountll(chosen));
    } else { /* sixteen at a time, as 32-bit integers: narrower ones cannot be compressed */
        char bytes[VEC_BYTES];
        vec_store(bytes, v);
        for (size_t i = 0; i < VEC_BYTES / size / 16; i++) {
            __mmask16 some = chosen_lanes(chosen >> (16 * size * i), size);
            __m512i wide = size == 1
                ? _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes + i))
                : _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)bytes + i));
            __mmask16 count = (__mmask16)_bzhi_u32(0xffff, (unsigned)__builtin_popcount(some));
            wide = _mm512_maskz_compress_epi32(some, wide);
            if (room && size == 1)
                _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(wide));
            else if (room)
                _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16(wide));
            else if (size == 1)
                _mm512_mask_cvtepi32_storeu_epi8(to, count, wide);
            else
                _mm512_mask_cvtepi32_storeu_epi16(to, count, wide);
            to += size * (size_t)__builtin_popcount(some);
        }
    }
    return (size_t)__builtin_popcountll(chosen) / size;
}

/* ---- maximum ---- */

MAX_BY_INTRINSIC(f32, __m512, _mm512_max_ps)
MAX_BY_INTRINSIC(f64, __m512d, _mm512_max_pd)
MAX_BY_INTRINSIC(i8, __m512i, _mm512_max_epi8)
MAX_BY_INTRINSIC(u8, __m512i, _mm512_max_epu8)
MAX_BY_INTRINSIC(i16, __m512i, _mm512_max_epi16)
MAX_BY_INTRINSIC(u16, __m512i, _mm512_max_epu16)
MAX_BY_INTRINSIC(i32, __m512i, _mm512_max_epi32)
MAX_BY_INTRINSIC(u32, __m512i, _mm512_max_epu32)
MAX_BY_INTRINSIC(i64, __m512i, _mm512_max_epi64)
MAX_BY_INTRINSIC(u64, __m512i, _mm512_max_epu64)
MAX_BY_INTRINSIC(min_f32, __m512, _mm512_min_ps)
MAX_BY_INTRINSIC(min_f64, __m512d, _mm512_min_pd)
MAX_BY_INTRINSIC(min_u8, __m512i, _mm512_min_epu8)
MAX_BY_INTRINSIC(min_u16, __m512i, _mm512_min_epu16)
DEFINE_NARROW_MAX_BY_SSE41

/* ---- even and odd elements, and one element on ---- */

INLINE vec_t vec_concat_even_1(vec_t lo, vec_t hi) {
    const __m512i low = _mm512_set1_epi16(0xff), order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    __m512i a = _mm512_and_si512((__m512i)lo, low), b = _mm512_and_si512((__m512i)hi, low);
    return (vec_t)_mm512_permutexvar_epi64(order, _mm512_packus_epi16(a, b));
}
EVEN_BY_SHUFFLE(2, vec_u16, EVEN_16(0), EVEN_16(32))
EVEN_BY_SHUFFLE(4, vec_u32, EVEN_16(0))
EVEN_BY_SHUFFLE(8, vec_u64, EVEN_8(0))
ODD_BY_SHUFFLE(4, vec_u32, ODD_16(0))
ODD_BY_SHUFFLE(8, vec_u64, ODD_8(0))
#define SHIFT_IN(a, b, n)                                                                         \
    ((vec_t)_mm512_alignr_epi8(_mm512_alignr_epi64((__m512i)b, (__m512i)a, 2), (__m512i)a, n))
INLINE vec_t vec_shift_in_1(vec_t a, vec_t b) { return SHIFT_IN(a, b, 1); }
INLINE vec_t vec_shift_in_2(vec_t a, vec_t b) { return SHIFT_IN(a, b, 2); }
INLINE vec_t vec_shift_in_4(vec_t a, vec_t b) {
    return (vec_t)_mm512_alignr_epi32((__m512i)b, (__m512i)a, 1);
}
INLINE vec_t vec_shift_in_8(vec_t a, vec_t b) {
    return (vec_t)_mm512_alignr_epi64((__m512i)b, (__m512i)a, 1);
}
#define vec_shift(a, b, n)                                                                        \
    ((n) == 0   ? (a)                                                                             \
     : (n) < 64 ? (vec_t)_mm512_alignr_epi32((__m512i)(b), (__m512i)(a), (n) / 4 & 15)            \
                : (b))

/* ---- comparison and selection ---- */

typedef uint64_t vec_mask;
INLINE vec_mask vec_gt_i16(vec_t a, vec_t b) {
    return _mm512_cmpgt_epi16_mask((__m512i)a, (__m512i)b);
}
INLINE vec_mask vec_gt_i32(vec_t a, vec_t b) {
    return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b);
}
INLINE vec_mask vec_gt_i64(vec_t a, vec_t b) {
    return _mm512_cmpgt_epi64_mask((__m512i)a, (__m512i)b);
}
INLINE vec_mask vec_gt_f32(vec_t a, vec_t b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
}
INLINE vec_mask vec_gt_f64(vec_t a, vec_t b) {
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ);
}
INLINE vec_t vec_select_i16(vec_mask m, vec_t a, vec_t b) {
    return (vec_t)_mm512_mask_mov_epi16((__m512i)b, (__mmask32)m, (__m512i)a);
}
INLINE vec_t vec_select_i32(vec_mask m, vec_t a, vec_t b) {
    return (vec_t)_mm512_mask_mov_epi32((__m512i)b, (__mmask16)m, (__m512i)a);
}
INLINE vec_t vec_select_i64(vec_mask m, vec_t a, vec_t b) {
    return (vec_t)_mm512_mask_mov_epi64((__m512i)b, (__mmask8)m, (__m512i)a);
}

/* ---- the NaN flag, in mask registers ---- */

typedef uint64_t vec_flag;
INLINE vec_flag flag_none(void) { return 0; }
INLINE int flag_any(vec_flag f) { return f != 0; }
INLINE vec_flag flag_or(vec_flag a, vec_flag b) { return _kor_mask64(a, b); }
INLINE vec_flag nan_in_f32(vec_t a, vec_t b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
}
INLINE vec_flag nan_in_f64(vec_t a, vec_t b) {
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q);
}

/* ---- positions as 64-bit integers ---- */

INLINE void vec_widen_i16(vec_t v, vec_t *to) {
    to[0] = (vec_t)_mm512_cvtepu16_epi64(_mm512_castsi512_si128((__m512i)v));
    to[1] = (vec_t)_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32((__m512i)v, 1));
    to[2] = (vec_t)_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32((__m512i)v, 2));
    to[3] = (vec_t)_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32((__m512i)v, 3));
}
INLINE void vec_widen_i32(vec_t v, vec_t *to) {
    to[0] = (vec_t)_mm512_cvtepu32_epi64(_mm512_castsi512_si256((__m512i)v));
    to[1] = (vec_t)_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64((__m512i)v, 1));
}

#endif
