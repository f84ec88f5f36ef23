/* Rows of elements of every type as the floats or doubles that are added. */
#ifndef FASTPOOL_CONVERT_H
#define FASTPOOL_CONVERT_H

#include "keys.h"
#include "wide.h"

/* ---- as floats: elements of up to 24 bits ---- */

static void to_floats_f32(void *to, const void *from, ptrdiff_t n, int word) {
    (void)word;
    memcpy(to, from, (size_t)n * 4);
}
/* As many as there are floats in a vector: sums of a few bytes. */
typedef int16_t shorts_t __attribute__((vector_size(VEC_BYTES / 2)));
#if VEC_BYTES == 64
#define TO_FLOATS_LANES 16
#define LOAD_LANES(p) _mm256_loadu_si256((const __m256i *)(p))
#define LOAD_BYTES(p) _mm_loadu_si128((const __m128i *)(p))
#define FLOATS_OF(v) (vec_t)_mm512_cvtepi32_ps(v)
INLINE vec_t floats_f16(const float16_t_ *p) { return (vec_t)_mm512_cvtph_ps(LOAD_LANES(p)); }
INLINE vec_t floats_bf16(const bfloat16_t_ *p) {
    return (vec_t)_mm512_slli_epi32(_mm512_cvtepu16_epi32(LOAD_LANES(p)), 16);
}
INLINE vec_t floats_i8(const int8_t *p) { return FLOATS_OF(_mm512_cvtepi8_epi32(LOAD_BYTES(p))); }
INLINE vec_t floats_u8(const uint8_t *p) { return FLOATS_OF(_mm512_cvtepu8_epi32(LOAD_BYTES(p))); }
INLINE vec_t floats_i16(const int16_t *p) {
    return FLOATS_OF(_mm512_cvtepi16_epi32(LOAD_LANES(p)));
}
INLINE vec_t floats_u16(const uint16_t *p) {
    return FLOATS_OF(_mm512_cvtepu16_epi32(LOAD_LANES(p)));
}
INLINE shorts_t shorts_i8(const int8_t *p) {
    return (shorts_t)_mm256_cvtepi8_epi16(LOAD_BYTES(p));
}
INLINE shorts_t shorts_u8(const uint8_t *p) {
    return (shorts_t)_mm256_cvtepu8_epi16(LOAD_BYTES(p));
}
#define WORDS_OF(shorts) (vec_i32)_mm512_cvtepi16_epi32((__m256i)(shorts))
#elif VEC_BYTES == 32
#define TO_FLOATS_LANES 8
#define LOAD_LANES(p) _mm_loadu_si128((const __m128i *)(p))
#define LOAD_BYTES(p) _mm_loadl_epi64((const __m128i *)(p))
#define FLOATS_OF(v) (vec_t)_mm256_cvtepi32_ps(v)
INLINE vec_t floats_f16(const float16_t_ *p) { return (vec_t)_mm256_cvtph_ps(LOAD_LANES(p)); }
INLINE vec_t floats_bf16(const bfloat16_t_ *p) {
    return (vec_t)_mm256_slli_epi32(_mm256_cvtepu16_epi32(LOAD_LANES(p)), 16);
}
INLINE vec_t floats_i8(const int8_t *p) { return FLOATS_OF(_mm256_cvtepi8_epi32(LOAD_BYTES(p))); }
INLINE vec_t floats_u8(const uint8_t *p) { return FLOATS_OF(_mm256_cvtepu8_epi32(LOAD_BYTES(p))); }
INLINE vec_t floats_i16(const int16_t *p) {
    return FLOATS_OF(_mm256_cvtepi16_epi32(LOAD_LANES(p)));
}
INLINE vec_t floats_u16(const uint16_t *p) {
    return FLOATS_OF(_mm256_cvtepu16_epi32(LOAD_LANES(p)));
}
INLINE shorts_t shorts_i8(const int8_t *p) {
    return (shorts_t)_mm_cvtepi8_epi16(LOAD_BYTES(p));
}
INLINE shorts_t shorts_u8(const uint8_t *p) {
    return (shorts_t)_mm_cvtepu8_epi16(LOAD_BYTES(p));
}
#define WORDS_OF(shorts) (vec_i32)_mm256_cvtepi16_epi32((__m128i)(shorts))
#else
#define WORDS_OF(shorts) __builtin_convertvector(shorts, vec_i32)
#endif
INLINE vec_t floats_of_shorts(shorts_t v) {
    return (vec_t)__builtin_convertvector(WORDS_OF(v), vec_f32);
}
#ifdef TO_FLOATS_LANES
#define DEFINE_TO_FLOATS(name, T)                                                                 \
    static void to_floats_##name(void *sums, const void *elements, ptrdiff_t n, int word) {       \
        float *to = (float *)sums;                                                                \
        const T *from = (const T *)elements;                                                      \
        ptrdiff_t i = 0;                                                                          \
        (void)word;                                                                               \
        for (; i + TO_FLOATS_LANES <= n; i += TO_FLOATS_LANES)                                    \
            vec_store(to + i, floats_##name(from + i));                                           \
        if (i < n && n >= TO_FLOATS_LANES) {                                                      \
            i = n - TO_FLOATS_LANES;                                                              \
            vec_store(to + i, floats_##name(from + i));                                           \
        } else                                                                                    \
            for (; i < n; i++) to[i] = (float)as_double_##name(from[i]);                          \
    }
#else
#define DEFINE_TO_FLOATS(name, T)                                                                 \
    static VECTORISED void to_floats_##name(void *sums, const void *elements, ptrdiff_t n,        \
                                            int word) {                                           \
        float *to = (float *)sums;                                                                \
        const T *from = (const T *)elements;                                                      \
        (void)word;                                                                               \
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (float)as_double_##name(from[i]);               \
    }
#endif
#if defined(__aarch64__) && VEC_BYTES == 16 /* (gcc does not vectorise what it would be in C) */
static void to_floats_f16(void *sums, const void *elements, ptrdiff_t n, int word) {
    float *to = (float *)sums;
    const float16_t_ *from = (const float16_t_ *)elements;
    ptrdiff_t i = 0;
    (void)word;
    for (; i + 4 <= n; i += 4) {
        float16x4_t v;
        memcpy(&v, from + i, sizeof v);
        vec_store(to + i, (vec_t)vcvt_f32_f16(v));
    }
    for (; i < n; i++) to[i] = (float)as_double_f16(from[i]);
}
#else
DEFINE_TO_FLOATS(f16, float16_t_)
#endif
DEFINE_TO_FLOATS(bf16, bfloat16_t_)
DEFINE_TO_FLOATS(i8, int8_t) DEFINE_TO_FLOATS(u8, uint8_t)
DEFINE_TO_FLOATS(i16, int16_t) DEFINE_TO_FLOATS(u16, uint16_t)

/* ---- as doubles. Only 64-bit integers may be rounded. ---- */

#define DEFINE_TO_DOUBLES(name, T)                                                                \
    static void to_doubles_##name(void *sums, const void *elements, ptrdiff_t n, int word) {      \
        double *to = (double *)sums;                                                              \
        const T *from = (const T *)elements;                                                      \
        ptrdiff_t i = 0;                                                                          \
        (void)word;                                                                               \
        for (; i + WIDE <= n; i += WIDE) vec_store(to + i, wide_##name(from + i));                \
        for (; i < n; i++) to[i] = as_double_##name(from[i]);                                     \
    }
DEFINE_TO_DOUBLES(f32, float) DEFINE_TO_DOUBLES(f64, double)
DEFINE_TO_DOUBLES(f16, float16_t_) DEFINE_TO_DOUBLES(bf16, bfloat16_t_)
DEFINE_TO_DOUBLES(i8, int8_t) DEFINE_TO_DOUBLES(u8, uint8_t)
DEFINE_TO_DOUBLES(i16, int16_t) DEFINE_TO_DOUBLES(u16, uint16_t)
DEFINE_TO_DOUBLES(i32, int32_t) DEFINE_TO_DOUBLES(u32, uint32_t)
DEFINE_TO_DOUBLES(i64, int64_t) DEFINE_TO_DOUBLES(u64, uint64_t)
DEFINE_TO_DOUBLES(bool, bool_t_)

/* ---- one word of integers as doubles: 16 bits, the highest of which have the sign ---- */

#define DEFINE_TO_WORDS(name, T)                                                                  \
    static void to_words_##name(void *sums, const void *elements, ptrdiff_t n, int word) {        \
        double *to = (double *)sums;                                                              \
        const T *from = (const T *)elements;                                                      \
        const int last = 16 * word + 16 == 8 * (int)sizeof(T);                                    \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            T x = from[i] >> (16 * word);                                                         \
            to[i] = last ? (double)x : (double)(int)(x & 0xffff);                                 \
        }                                                                                         \
    }
DEFINE_TO_WORDS(i32, int32_t) DEFINE_TO_WORDS(u32, uint32_t)
DEFINE_TO_WORDS(i64, int64_t) DEFINE_TO_WORDS(u64, uint64_t)

/* ---- runs and rows of bytes, whose sums are exact in any order ---- */

INLINE vec_u64 sums_of_eight(vec_t v) { /* neighbours */
#if VEC_BYTES == 64
    return (vec_u64)_mm512_sad_epu8((__m512i)v, _mm512_setzero_si512());
#elif VEC_BYTES == 32
    return (vec_u64)_mm256_sad_epu8((__m256i)v, _mm256_setzero_si256());
#elif defined(__SSE2__)
    return (vec_u64)_mm_sad_epu8((__m128i)v, _mm_setzero_si128());
#else
    vec_u16 pairs = ((vec_u16)v & 0xff) + ((vec_u16)v >> 8);
    vec_u32 fours = ((vec_u32)pairs & 0xffff) + ((vec_u32)pairs >> 16);
    return ((vec_u64)fours & 0xffffffff) + ((vec_u64)fours >> 32);
#endif
}
/* 128 is added to signed bytes, and to lanes past the end. `total_of_bytes` subtracts it. */
INLINE vec_u64 sums_with_bytes(vec_u64 sums, const char *p, ptrdiff_t n, int is_signed) {
    const vec_t bias = (vec_t)((vec_u8){0} + (uint8_t)(is_signed ? 128 : 0));
    ptrdiff_t i = 0;
    for (; i + VEC_BYTES <= n; i += VEC_BYTES) sums += sums_of_eight(vec_load(p + i) ^ bias);
    return i < n ? sums + sums_of_eight(vec_load_part(p + i, (size_t)(n - i)) ^ bias) : sums;
}
INLINE int64_t total_of_bytes(vec_u64 sums, ptrdiff_t n, ptrdiff_t rows, int is_signed) {
    int64_t sum = 0;
    for (int lane = 0; lane < VEC_BYTES / 8; lane++) sum += (int64_t)sums[lane];
    return is_signed ? sum - 128 * rows * ((n + VEC_BYTES - 1) / VEC_BYTES * VEC_BYTES) : sum;
}
static int64_t sum_of_bytes(const char *p, ptrdiff_t n, int is_signed) {
    /* (Two loops: unsigned bytes need no bias, 0.88 of the instructions of 64x56x56, SSE2.) */
    if (is_signed) return total_of_bytes(sums_with_bytes((vec_u64){0}, p, n, 1), n, 1, 1);
    return total_of_bytes(sums_with_bytes((vec_u64){0}, p, n, 0), n, 1, 0);
}
static int64_t sum_of_rows_of_bytes(const char *p, ptrdiff_t n, ptrdiff_t rows, ptrdiff_t pitch,
                                    int is_signed) {
    vec_u64 sums = {0};
    for (ptrdiff_t r = 0; r < rows; r++, p += pitch)
        sums = sums_with_bytes(sums, p, n, is_signed);
    return total_of_bytes(sums, n, rows, is_signed);
}

/* ---- is one of n floats a NaN? ---- */

#define NANS_FLOAT(V, v) (vec_t)((V)(v) != (V)(v))
#define NANS_HALF(bits, v) (vec_t)(((vec_i16)(v) & 0x7fff) > bits)
#define DEFINE_CONTAINS_NAN(name, T, NANS, how)                                                   \
    static int contains_nan_##name(const char *p, ptrdiff_t n) {                                  \
        vec_t any = {0};                                                                          \
        n *= (ptrdiff_t)sizeof(T);                                                                \
        for (; n >= VEC_BYTES; n -= VEC_BYTES, p += VEC_BYTES) {                                  \
            any |= NANS(how, vec_load(p));                                                        \
            if (n % 4096 < VEC_BYTES && vec_any(any)) return 1;                                   \
        }                                                                                         \
        if (n > 0) any |= NANS(how, vec_load_part(p, (size_t)n));                                 \
        return vec_any(any);                                                                      \
    }
DEFINE_CONTAINS_NAN(f32, float, NANS_FLOAT, vec_f32)
DEFINE_CONTAINS_NAN(f64, double, NANS_FLOAT, vec_f64)
DEFINE_CONTAINS_NAN(f16, float16_t_, NANS_HALF, 0x7c00)
DEFINE_CONTAINS_NAN(bf16, bfloat16_t_, NANS_HALF, 0x7f80)
static int contains_nan(const char *p, ptrdiff_t n, int code) {
    return code == F32   ? contains_nan_f32(p, n)
           : code == F64 ? contains_nan_f64(p, n)
           : code == F16 ? contains_nan_f16(p, n)
                         : contains_nan_bf16(p, n);
}

/* Set n sums to elements, or to one word of each. */
typedef void (*convert_t)(void *to, const void *from, ptrdiff_t n, int word);

static convert_t to_floats_of(int code) {
    static const convert_t of[DTYPES] = {
        [F16] = to_floats_f16, [BF16] = to_floats_bf16, [F32] = to_floats_f32,
        [I8] = to_floats_i8,   [U8] = to_floats_u8,     [I16] = to_floats_i16,
        [U16] = to_floats_u16,
    };
    return of[code];
}
static convert_t to_doubles_of(int code) {
    static const convert_t of[DTYPES] = {
        [F16] = to_doubles_f16, [BF16] = to_doubles_bf16, [F32] = to_doubles_f32,
        [F64] = to_doubles_f64, [I8] = to_doubles_i8,     [U8] = to_doubles_u8,
        [I16] = to_doubles_i16, [U16] = to_doubles_u16,   [I32] = to_doubles_i32,
        [U32] = to_doubles_u32, [I64] = to_doubles_i64,   [U64] = to_doubles_u64,
        [BOOL] = to_doubles_bool,
    };
    return of[code];
}
static convert_t to_words_of(int code) {
    static const convert_t of[DTYPES] = {
        [I32] = to_words_i32, [U32] = to_words_u32, [I64] = to_words_i64, [U64] = to_words_u64,
    };
    return of[code];
}

#endif
