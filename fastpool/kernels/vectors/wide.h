/* Elements of every type as doubles, WIDE at a time. Only 64-bit integers may be rounded. */
#ifndef FASTPOOL_WIDE_H
#define FASTPOOL_WIDE_H

#include "vector.h"

#define WIDE (VEC_BYTES / 8)
#define BITS_OF(to, from) memcpy(&(to), &(from), sizeof(to))

/* Elements that C has no type for. */
typedef struct {
    uint16_t bits;
} float16_t_;
typedef struct {
    uint16_t bits;
} bfloat16_t_;
typedef struct {
    uint8_t bits;
} bool_t_;

/* ---- one element ---- */

INLINE float bits_to_f32(uint32_t bits) {
    float value;
    BITS_OF(value, bits);
    return value;
}
#ifdef __F16C__ /* (random signs are not predicted) */
INLINE double as_double_f16(float16_t_ x) { return _cvtsh_ss(x.bits); }
#else
INLINE double as_double_f16(float16_t_ x) {
    uint32_t bits = (uint32_t)(x.bits & 0x7fff) << 13, sign = (uint32_t)(x.bits & 0x8000) << 16;
    float value;
    if (bits >= 0x7c00u << 13) return bits_to_f32(bits | sign | 0x7f800000);
    value = bits_to_f32(bits) * 0x1p112f; /* (rebias the exponent; subnormals become right) */
    return sign ? -value : value;
}
#endif
INLINE double as_double_bf16(bfloat16_t_ x) { return bits_to_f32((uint32_t)x.bits << 16); }
INLINE double as_double_bool(bool_t_ x) { return x.bits != 0; }
#define AS_DOUBLE(name, T)                                                                        \
    INLINE double as_double_##name(T x) { return (double)x; }
AS_DOUBLE(f32, float) AS_DOUBLE(f64, double)
AS_DOUBLE(i8, int8_t) AS_DOUBLE(u8, uint8_t) AS_DOUBLE(i16, int16_t) AS_DOUBLE(u16, uint16_t)
AS_DOUBLE(i32, int32_t) AS_DOUBLE(u32, uint32_t) AS_DOUBLE(i64, int64_t) AS_DOUBLE(u64, uint64_t)

/* ---- WIDE elements ---- */

INLINE vec_t wide_f64(const double *p) { return vec_load(p); }
#define WIDE_BY_INTRINSIC(name, T, expression)                                                    \
    INLINE vec_t wide_##name(const T *p) { return (vec_t)(expression); }
#define WIDE_BY_LANES(name, T)                                                                    \
    INLINE vec_t wide_##name(const T *p) {                                                        \
        vec_f64 v;                                                                                \
        for (int i = 0; i < WIDE; i++) v[i] = as_double_##name(p[i]);                             \
        return (vec_t)v;                                                                          \
    }

#if VEC_BYTES == 64
#define LOAD128(p) _mm_loadu_si128((const __m128i *)(p))
#define LOAD256(p) _mm256_loadu_si256((const __m256i *)(p))
#define FROM32(v) _mm512_cvtepi32_pd(v)
WIDE_BY_INTRINSIC(f32, float, _mm512_cvtps_pd(_mm256_loadu_ps(p)))
WIDE_BY_INTRINSIC(f16, float16_t_, _mm512_cvtps_pd(_mm256_cvtph_ps(LOAD128(p))))
WIDE_BY_INTRINSIC(bf16, bfloat16_t_, _mm512_cvtps_pd((__m256)_mm256_slli_epi32(
    _mm256_cvtepu16_epi32(LOAD128(p)), 16)))
WIDE_BY_INTRINSIC(i8, int8_t, FROM32(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p))))
WIDE_BY_INTRINSIC(u8, uint8_t, FROM32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p))))
WIDE_BY_INTRINSIC(i16, int16_t, FROM32(_mm256_cvtepi16_epi32(LOAD128(p))))
WIDE_BY_INTRINSIC(u16, uint16_t, FROM32(_mm256_cvtepu16_epi32(LOAD128(p))))
WIDE_BY_INTRINSIC(i32, int32_t, FROM32(LOAD256(p)))
WIDE_BY_INTRINSIC(u32, uint32_t, _mm512_cvtepu32_pd(LOAD256(p)))
WIDE_BY_INTRINSIC(i64, int64_t, _mm512_cvtepi64_pd(_mm512_loadu_si512(p)))
WIDE_BY_INTRINSIC(u64, uint64_t, _mm512_cvtepu64_pd(_mm512_loadu_si512(p)))
#elif VEC_BYTES == 32
INLINE __m128i load_32(const void *p) {
    int32_t bits;
    memcpy(&bits, p, 4);
    return _mm_cvtsi32_si128(bits);
}
#define LOAD64(p) _mm_loadl_epi64((const __m128i *)(p))
#define FROM32(v) _mm256_cvtepi32_pd(v)
WIDE_BY_INTRINSIC(f32, float, _mm256_cvtps_pd(_mm_loadu_ps(p)))
WIDE_BY_INTRINSIC(f16, float16_t_, _mm256_cvtps_pd(_mm_cvtph_ps(LOAD64(p))))
WIDE_BY_INTRINSIC(bf16, bfloat16_t_,
                  _mm256_cvtps_pd((__m128)_mm_slli_epi32(_mm_cvtepu16_epi32(LOAD64(p)), 16)))
WIDE_BY_INTRINSIC(i8, int8_t, FROM32(_mm_cvtepi8_epi32(load_32(p))))
WIDE_BY_INTRINSIC(u8, uint8_t, FROM32(_mm_cvtepu8_epi32(load_32(p))))
WIDE_BY_INTRINSIC(i16, int16_t, FROM32(_mm_cvtepi16_epi32(LOAD64(p))))
WIDE_BY_INTRINSIC(u16, uint16_t, FROM32(_mm_cvtepu16_epi32(LOAD64(p))))
WIDE_BY_INTRINSIC(i32, int32_t, FROM32(_mm_loadu_si128((const __m128i *)p)))
/* as the low bits of 2**52 + x */
WIDE_BY_INTRINSIC(u32, uint32_t,
                  (__m256d)_mm256_or_si256(
                      _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)p)),
                      _mm256_set1_epi64x(0x4330000000000000)) - _mm256_set1_pd(0x1p52))
WIDE_BY_LANES(i64, int64_t)
WIDE_BY_LANES(u64, uint64_t)
#else
INLINE vec_t wide_f32(const float *p) {
    VECTOR(float, 8) v;
    memcpy(&v, p, 8);
    return (vec_t)__builtin_convertvector(v, vec_f64);
}
WIDE_BY_LANES(f16, float16_t_)
WIDE_BY_LANES(bf16, bfloat16_t_)
WIDE_BY_LANES(i8, int8_t)
WIDE_BY_LANES(u8, uint8_t)
WIDE_BY_LANES(i16, int16_t)
WIDE_BY_LANES(u16, uint16_t)
WIDE_BY_LANES(i32, int32_t)
WIDE_BY_LANES(u32, uint32_t)
WIDE_BY_LANES(i64, int64_t)
WIDE_BY_LANES(u64, uint64_t)
#endif
INLINE vec_t wide_bool(const bool_t_ *p) {
    uint8_t bytes[WIDE];
    for (int i = 0; i < WIDE; i++) bytes[i] = p[i].bits != 0;
    return wide_u8(bytes);
}
/* ---- lanes where a comparison holds ---- */

#if VEC_BYTES == 64
typedef __mmask8 lanes_t;
#define COMPARED(a, b, how) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), how)
INLINE lanes_t lanes_equal(vec_f64 a, vec_f64 b) { return COMPARED(a, b, _CMP_EQ_OQ); }
INLINE lanes_t lanes_differ(vec_f64 a, vec_f64 b) { return COMPARED(a, b, _CMP_NEQ_UQ); }
INLINE lanes_t lanes_above(vec_f64 a, vec_f64 b) { return COMPARED(a, b, _CMP_GT_OQ); }
INLINE int lanes_any(lanes_t m) { return m != 0; }
INLINE int lane_of(lanes_t m, ptrdiff_t i) { return m >> i & 1; }
INLINE vec_f64 lanes_kept(lanes_t m, vec_f64 v) { /* the others are 0 */
    return (vec_f64)_mm512_maskz_mov_pd(m, (__m512d)v);
}
#else
typedef vec_u64 lanes_t;
INLINE lanes_t lanes_equal(vec_f64 a, vec_f64 b) { return (vec_u64)(a == b); }
INLINE lanes_t lanes_differ(vec_f64 a, vec_f64 b) { return (vec_u64)(a != b); }
INLINE lanes_t lanes_above(vec_f64 a, vec_f64 b) { return (vec_u64)(a > b); }
INLINE int lanes_any(lanes_t m) { return vec_any((vec_t)m); }
INLINE int lane_of(lanes_t m, ptrdiff_t i) { return m[i] != 0; }
INLINE vec_f64 lanes_kept(lanes_t m, vec_f64 v) { return (vec_f64)(m & (vec_u64)v); }
#endif

#endif
