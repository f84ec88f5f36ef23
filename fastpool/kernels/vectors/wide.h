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

#define BY_ELEMENT(f, p)                                                                          \
    _Generic(*(p), float: f##_f32, double: f##_f64, int8_t: f##_i8, uint8_t: f##_u8,              \
             int16_t: f##_i16, uint16_t: f##_u16, int32_t: f##_i32, uint32_t: f##_u32,            \
             int64_t: f##_i64, uint64_t: f##_u64, float16_t_: f##_f16, bfloat16_t_: f##_bf16,     \
             bool_t_: f##_bool)

/* ---- one element ---- */

INLINE float bits_to_f32(uint32_t bits) {
    float value;
    BITS_OF(value, bits);
    return value;
}
INLINE double as_double_f16(float16_t_ x) {
    uint32_t bits = (uint32_t)(x.bits & 0x7fff) << 13, sign = (uint32_t)(x.bits & 0x8000) << 16;
    float value;
    if (bits >= 0x7c00u << 13) return bits_to_f32(bits | sign | 0x7f800000);
    value = bits_to_f32(bits) * 0x1p112f; /* (rebias the exponent; subnormals become right) */
    return sign ? -value : value;
}
INLINE double as_double_bf16(bfloat16_t_ x) { return bits_to_f32((uint32_t)x.bits << 16); }
INLINE double as_double_bool(bool_t_ x) { return x.bits != 0; }
#define AS_DOUBLE(name, T)                                                                        \
    INLINE double as_double_##name(T x) { return (double)x; }
AS_DOUBLE(f32, float) AS_DOUBLE(f64, double)
AS_DOUBLE(i8, int8_t) AS_DOUBLE(u8, uint8_t) AS_DOUBLE(i16, int16_t) AS_DOUBLE(u16, uint16_t)
AS_DOUBLE(i32, int32_t) AS_DOUBLE(u32, uint32_t) AS_DOUBLE(i64, int64_t) AS_DOUBLE(u64, uint64_t)
#define as_double(p) BY_ELEMENT(as_double, p)(*(p))

/* ---- WIDE elements ---- */

INLINE vec_t wide_f64(const double *p) { return vec_load(p); }
#define WIDE_BY_INTRINSIC(name, T, expression)                                                    \
    INLINE vec_t wide_##name(const T *p) { return (vec_t)(expression); }
#define WIDE_BY_LANES(name, T)                                                                    \
    INLINE vec_t wide_##name(const T *p) {                                                        \
        vec_f64 v;                                                                                \
        for (int i = 0; i < WIDE; i++) v[i] = as_double(p + i);                                   \
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
#define wide(p) BY_ELEMENT(wide, p)(p)

/* The first n elements, n < WIDE; the others are 0. */
#define wide_some(p, n) ({                                                                   \
    char bytes_[VEC_BYTES];                                                                       \
    vec_store(bytes_, vec_load_part(p, (size_t)(n) * sizeof(*(p))));                              \
    wide((__typeof__(p))(void *)bytes_); })

#define WIDE_PART_LOAD(name, T)                                                                   \
    INLINE vec_t wide_part_load_##name(const T *p, ptrdiff_t n) { return wide_some(p, n); }
WIDE_PART_LOAD(f16, float16_t_) WIDE_PART_LOAD(bf16, bfloat16_t_)
WIDE_PART_LOAD(i8, int8_t) WIDE_PART_LOAD(u8, uint8_t)
WIDE_PART_LOAD(i16, int16_t) WIDE_PART_LOAD(u16, uint16_t)
WIDE_PART_LOAD(i32, int32_t) WIDE_PART_LOAD(u32, uint32_t)
WIDE_PART_LOAD(i64, int64_t) WIDE_PART_LOAD(u64, uint64_t) WIDE_PART_LOAD(bool, bool_t_)
INLINE vec_t wide_part_load_f64(const double *p, ptrdiff_t n) {
    return vec_load_part(p, (size_t)n * 8);
}
#if VEC_BYTES == 64
INLINE vec_t wide_part_load_f32(const float *p, ptrdiff_t n) {
    return (vec_t)_mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)((1 << n) - 1), p));
}
#elif VEC_BYTES == 32
INLINE vec_t wide_part_load_f32(const float *p, ptrdiff_t n) {
    __m128i some = _mm_cmpgt_epi32(_mm_set1_epi32((int)n), _mm_setr_epi32(0, 1, 2, 3));
    return (vec_t)_mm256_cvtps_pd(_mm_maskload_ps(p, some));
}
#else
WIDE_PART_LOAD(f32, float)
#endif
#define wide_part_load(p, n) BY_ELEMENT(wide_part_load, p)(p, n)

/* Return the sum of a vector's elements. */
INLINE double wide_total(vec_t v) {
    vec_f64 d = (vec_f64)v;
    double total = d[0];
    for (int i = 1; i < WIDE; i++) total += d[i];
    return total;
}

/* Set to[i] to the sum of the first i + 1 of n doubles; a vector after them may be overwritten. */
static void sum_before(double *to, const double *from, ptrdiff_t n) {
#if VEC_BYTES >= 32
    vec_f64 before = {0};
    for (ptrdiff_t i = 0; i < n; i += WIDE) {
        vec_f64 v = (vec_f64)vec_load(from + i), last;
#if VEC_BYTES == 64
#define SHIFTED(v, lanes)                                                                         \
    (vec_f64)_mm512_alignr_epi64((__m512i)(v), _mm512_setzero_si512(), 8 - (lanes))
        v += SHIFTED(v, 1);
        v += SHIFTED(v, 2);
        v += SHIFTED(v, 4);
        last = (vec_f64)_mm512_permutexvar_pd(_mm512_set1_epi64(7), (__m512d)v);
#else
        __m256d zero = _mm256_setzero_pd(), low;
        low = _mm256_permute2f128_pd((__m256d)v, (__m256d)v, 0x08); /* 0, and the low half */
        v += (vec_f64)_mm256_shuffle_pd(low, (__m256d)v, 0x4);
        v += (vec_f64)_mm256_permute2f128_pd((__m256d)v, zero, 0x08);
        last = (vec_f64)_mm256_permute4x64_pd((__m256d)v, 0xff);
#endif
        vec_store(to + i, (vec_t)(v + before));
        before += last;
    }
#else
    double before = 0;
    for (ptrdiff_t i = 0; i < n; i++) to[i] = before += from[i];
#endif
}

/* ---- lanes where a comparison holds ---- */

#if VEC_BYTES == 64
typedef __mmask8 lanes_t;
#define COMPARED(a, b, how) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), how)
INLINE lanes_t lanes_equal(vec_f64 a, vec_f64 b) { return COMPARED(a, b, _CMP_EQ_OQ); }
INLINE lanes_t lanes_differ(vec_f64 a, vec_f64 b) { return COMPARED(a, b, _CMP_NEQ_UQ); }
INLINE lanes_t lanes_above(vec_f64 a, vec_f64 b) { return COMPARED(a, b, _CMP_GT_OQ); }
INLINE lanes_t lanes_same_bits(vec_u64 a, vec_u64 b) {
    return _mm512_cmpeq_epi64_mask((__m512i)a, (__m512i)b);
}
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
INLINE lanes_t lanes_same_bits(vec_u64 a, vec_u64 b) { return (vec_u64)(a == b); }
INLINE int lanes_any(lanes_t m) { return vec_any((vec_t)m); }
INLINE int lane_of(lanes_t m, ptrdiff_t i) { return m[i] != 0; }
INLINE vec_f64 lanes_kept(lanes_t m, vec_f64 v) { return (vec_f64)(m & (vec_u64)v); }
#endif

/* ---- arithmetic, without a tag: all of it is on doubles ---- */

INLINE vec_t wide_add(vec_t a, vec_t b) { return (vec_t)((vec_f64)a + (vec_f64)b); }
INLINE vec_t wide_sub(vec_t a, vec_t b) { return (vec_t)((vec_f64)a - (vec_f64)b); }
INLINE vec_t wide_zero(void) { return (vec_t){0}; }

#endif
