/* What the vector extensions of gcc and clang give on every processor.
 *
 * The header of an instruction set defines VEC_BYTES and VEC_MASKS, includes this file, and then
 * defines its operations (vector.h lists them). The macros below write those operations that the
 * extensions compile well. An intrinsic is used only where gcc and clang were seen to emit worse
 * code without it (objdump: docs/measurements.md).
 */
#ifndef FASTPOOL_PORTABLE_H
#define FASTPOOL_PORTABLE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && !defined(__clang__)
#error "fastpool needs gcc or clang (clang-cl on Windows): its headers use their vector extensions"
#endif

#define INLINE static inline __attribute__((always_inline, unused))
#define VECTOR(T, bytes) T __attribute__((vector_size(bytes)))

/* ---- types: a vec_t is VEC_BYTES without an element type; the others are for casts ---- */

typedef VECTOR(long long, VEC_BYTES) vec_t;
typedef VECTOR(float, VEC_BYTES) vec_f32;
typedef VECTOR(double, VEC_BYTES) vec_f64;
typedef VECTOR(int8_t, VEC_BYTES) vec_i8;
typedef VECTOR(uint8_t, VEC_BYTES) vec_u8;
typedef VECTOR(int16_t, VEC_BYTES) vec_i16;
typedef VECTOR(uint16_t, VEC_BYTES) vec_u16;
typedef VECTOR(int32_t, VEC_BYTES) vec_i32;
typedef VECTOR(uint32_t, VEC_BYTES) vec_u32;
typedef VECTOR(int64_t, VEC_BYTES) vec_i64;
typedef VECTOR(uint64_t, VEC_BYTES) vec_u64;
typedef VECTOR(long long, 16) narrow_t;

/* Elements in the opposite order, whose maximum is the minimum of what they hold. */
typedef struct { float value; } min_f32_t;
typedef struct { double value; } min_f64_t;
typedef struct { uint8_t value; } min_u8_t;
typedef struct { uint16_t value; } min_u16_t;

/* ---- the type of a pointer picks the operation: f is completed to f_f32, f_i8, ... ---- */

#define BY_TYPE(f, p)                                                                             \
    _Generic(*(p), float: f##_f32, double: f##_f64, int8_t: f##_i8, uint8_t: f##_u8,              \
             int16_t: f##_i16, uint16_t: f##_u16, int32_t: f##_i32, uint32_t: f##_u32,            \
             int64_t: f##_i64, uint64_t: f##_u64, min_f32_t: f##_min_f32,                         \
             min_f64_t: f##_min_f64, min_u8_t: f##_min_u8, min_u16_t: f##_min_u16)
/* Keys are integers; floats take the operation of the integer of their width. */
#define BY_KEY(f, p)                                                                              \
    _Generic(*(p), int16_t: f##_i16, int32_t: f##_i32, int64_t: f##_i64, float: f##_i32,          \
             double: f##_i64)
#define BY_SIZE(f, p, ...)                                                                        \
    (sizeof(*(p)) == 1   ? f##_1(__VA_ARGS__)                                                     \
     : sizeof(*(p)) == 2 ? f##_2(__VA_ARGS__)                                                     \
     : sizeof(*(p)) == 4 ? f##_4(__VA_ARGS__)                                                     \
                         : f##_8(__VA_ARGS__))

/* ---- load and store whole vectors, at any address ---- */

INLINE vec_t vec_load(const void *p) {
    vec_t v;
    memcpy(&v, p, VEC_BYTES);
    return v;
}
INLINE void vec_store(void *p, vec_t v) { memcpy(p, &v, VEC_BYTES); }

/* ---- building blocks of vec_load_part and vec_store_part: pieces of halving size ----
 * memcpy(n) would be a call with an unknown length, which costs more than the pooling. */

#define COPY_PIECE(size)                                                                          \
    if (n & size) {                                                                               \
        memcpy(to + at, from + at, size);                                                         \
        at += size;                                                                               \
    }
#define COPY_BELOW_16(to, from)                                                                   \
    COPY_PIECE(8)                                                                                 \
    COPY_PIECE(4)                                                                                 \
    COPY_PIECE(2)                                                                                 \
    if (n & 1) to[at] = from[at];
/* LARGER: the pieces of 16 bytes and more, of longer vectors. */
#define DEFINE_PARTS(LARGER)                                                                      \
    INLINE vec_t vec_load_part(const void *p, size_t n) {                                         \
        vec_t v = {0};                                                                            \
        const char *from = (const char *)p;                                                       \
        char *to = (char *)&v;                                                                    \
        size_t at = 0;                                                                            \
        LARGER                                                                                    \
        COPY_BELOW_16(to, from)                                                                   \
        return v;                                                                                 \
    }                                                                                             \
    INLINE void vec_store_part(void *p, vec_t v, size_t n) {                                      \
        const char *from = (const char *)&v;                                                      \
        char *to = (char *)p;                                                                     \
        size_t at = 0;                                                                            \
        LARGER                                                                                    \
        COPY_BELOW_16(to, from)                                                                   \
    }

/* ---- byte masks: one bit per byte of a vector ---- */

typedef uint64_t byte_mask;
INLINE byte_mask byte_mask_below(ptrdiff_t n) {
    return n <= 0 ? 0 : n >= VEC_BYTES ? ~0ULL >> (64 - VEC_BYTES) : ~(~0ULL << n);
}
/* The bytes from `first` on and before `end`. */
INLINE byte_mask vec_mask_range(ptrdiff_t first, ptrdiff_t end) {
    return byte_mask_below(end) & ~byte_mask_below(first);
}

/* For builds without VEC_MASKS, where no kernel calls these in every row. */
#define DEFINE_MASKED_BY_BYTES                                                                    \
    INLINE vec_t vec_masked_load_or(const void *p, byte_mask inside, vec_t outside) {             \
        for (size_t i = 0; i < VEC_BYTES; i++)                                                    \
            if (inside >> i & 1) ((char *)&outside)[i] = ((const char *)p)[i];                    \
        return outside;                                                                           \
    }                                                                                             \
    INLINE size_t vec_compress_store(void *p, vec_t v, byte_mask chosen, size_t size, int room) { \
        char *to = (char *)p;                                                                     \
        (void)room;                                                                               \
        for (size_t i = 0; i < VEC_BYTES; i++)                                                    \
            if (chosen >> i & 1) *to++ = ((const char *)&v)[i];                                   \
        return (size_t)(to - (char *)p) / size;                                                   \
    }

/* ---- building blocks of vec_max and narrow_max ---- */

#define MAX_BY_INTRINSIC(tag, type, call)                                                         \
    INLINE vec_t vec_max_##tag(vec_t a, vec_t b) { return (vec_t)call((type)a, (type)b); }
#define MAX_BY_COMPARE(tag)                                                                       \
    INLINE vec_t vec_max_##tag(vec_t a, vec_t b) {                                                \
        vec_t greater = (vec_t)((vec_##tag)a > (vec_##tag)b);                                     \
        return (a & greater) | (b & ~greater);                                                    \
    }
#define MIN_BY_COMPARE(tag)                                                                       \
    INLINE vec_t vec_max_min_##tag(vec_t a, vec_t b) {                                            \
        vec_t less = (vec_t)((vec_##tag)a < (vec_##tag)b);                                        \
        return (a & less) | (b & ~less);                                                          \
    }
#define NARROW_BY_INTRINSIC(tag, type, call)                                                      \
    INLINE narrow_t narrow_max_##tag(narrow_t a, narrow_t b) {                                    \
        return (narrow_t)call((type)a, (type)b);                                                  \
    }
#define NARROW_BY_COMPARE(tag, T)                                                                 \
    INLINE narrow_t narrow_max_##tag(narrow_t a, narrow_t b) {                                    \
        typedef VECTOR(T, 16) typed;                                                              \
        narrow_t greater = (narrow_t)((typed)a > (typed)b);                                       \
        return (a & greater) | (b & ~greater);                                                    \
    }

/* For x86 with vectors of more than 16 bytes, which has SSE4.1. */
#define DEFINE_NARROW_MAX_BY_SSE41                                                                \
    NARROW_BY_INTRINSIC(f32, __m128, _mm_max_ps)                                                  \
    NARROW_BY_INTRINSIC(f64, __m128d, _mm_max_pd)                                                 \
    NARROW_BY_INTRINSIC(i8, __m128i, _mm_max_epi8)                                                \
    NARROW_BY_INTRINSIC(u8, __m128i, _mm_max_epu8)                                                \
    NARROW_BY_INTRINSIC(i16, __m128i, _mm_max_epi16)                                              \
    NARROW_BY_INTRINSIC(u16, __m128i, _mm_max_epu16)                                              \
    NARROW_BY_INTRINSIC(i32, __m128i, _mm_max_epi32)                                              \
    NARROW_BY_INTRINSIC(u32, __m128i, _mm_max_epu32)                                              \
    NARROW_BY_COMPARE(i64, int64_t)                                                               \
    NARROW_BY_COMPARE(u64, uint64_t)                                                              \
    NARROW_BY_INTRINSIC(min_f32, __m128, _mm_min_ps)                                              \
    NARROW_BY_INTRINSIC(min_f64, __m128d, _mm_min_pd)                                             \
    NARROW_BY_INTRINSIC(min_u8, __m128i, _mm_min_epu8)                                            \
    NARROW_BY_INTRINSIC(min_u16, __m128i, _mm_min_epu16)

/* ---- narrow vectors: 16 bytes; only the first `bytes` (16, 8, 4, 2 or 1) are touched ---- */

#define NARROW_COPY(to, from)                                                                     \
    if (bytes == 16)                                                                              \
        memcpy(to, from, 16);                                                                     \
    else if (bytes == 8)                                                                          \
        memcpy(to, from, 8);                                                                      \
    else if (bytes == 4)                                                                          \
        memcpy(to, from, 4);                                                                      \
    else if (bytes == 2)                                                                          \
        memcpy(to, from, 2);                                                                      \
    else                                                                                          \
        memcpy(to, from, 1);
INLINE narrow_t narrow_load(const void *p, size_t bytes) {
    narrow_t v = {0};
    NARROW_COPY(&v, p)
    return v;
}
INLINE void narrow_store(void *p, narrow_t v, size_t bytes) { NARROW_COPY(p, &v) }

/* ---- building blocks of vec_concat_even, vec_concat_odd and vec_shift_in ---- */

#define EVEN_2(k) k, k + 2
#define EVEN_4(k) EVEN_2(k), EVEN_2(k + 4)
#define EVEN_8(k) EVEN_4(k), EVEN_4(k + 8)
#define EVEN_16(k) EVEN_8(k), EVEN_8(k + 16)
#define ODD_2(k) k + 1, k + 3
#define ODD_4(k) ODD_2(k), ODD_2(k + 4)
#define ODD_8(k) ODD_4(k), ODD_4(k + 8)
#define ODD_16(k) ODD_8(k), ODD_8(k + 16)
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(type, a, b, ...) ((vec_t)__builtin_shufflevector((type)a, (type)b, __VA_ARGS__))
#else
#define SHUFFLE(type, a, b, ...) ((vec_t)__builtin_shuffle((type)a, (type)b, (type){__VA_ARGS__}))
#endif
/* Integers as a low and a high half. Elements are counted in their order in memory, where the
 * order of bytes says which half comes first. TO_FIRST_HALF moves the second half to the place of
 * the first. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HIGH_HALF_FIRST 1
#define SHUFFLE_HALVES(type, low, high, ...) SHUFFLE(type, high, low, __VA_ARGS__)
#define TO_FIRST_HALF(v, bits) ((v) << (bits))
#else
#define HIGH_HALF_FIRST 0
#define SHUFFLE_HALVES(type, low, high, ...) SHUFFLE(type, low, high, __VA_ARGS__)
#define TO_FIRST_HALF(v, bits) ((v) >> (bits))
#endif

#define EVEN_BY_SHUFFLE(size, type, ...)                                                          \
    INLINE vec_t vec_concat_even_##size(vec_t lo, vec_t hi) {                                     \
        return SHUFFLE(type, lo, hi, __VA_ARGS__);                                                \
    }
#define ODD_BY_SHUFFLE(size, type, ...)                                                           \
    INLINE vec_t vec_concat_odd_##size(vec_t lo, vec_t hi) {                                      \
        return SHUFFLE(type, lo, hi, __VA_ARGS__);                                                \
    }
#define SHIFT_IN_BY(call)                                                                         \
    INLINE vec_t vec_shift_in_1(vec_t a, vec_t b) { return call(a, b, 1); }                       \
    INLINE vec_t vec_shift_in_2(vec_t a, vec_t b) { return call(a, b, 2); }                       \
    INLINE vec_t vec_shift_in_4(vec_t a, vec_t b) { return call(a, b, 4); }                       \
    INLINE vec_t vec_shift_in_8(vec_t a, vec_t b) { return call(a, b, 8); }
/* For vectors of 16 bytes. */
#define SHIFT_IN_BY_SHUFFLE(a, b, n)                                                              \
    SHUFFLE(vec_u8, a, b, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9,       \
            n + 10, n + 11, n + 12, n + 13, n + 14, n + 15)
#define SHIFT_OF_16(a, b, n, call)                                                                \
    ((n) == 0 ? (a) : (n) < 16 ? call((vec_t)(a), (vec_t)(b), ((n) & 15)) : (b))

INLINE int vec_any(vec_t v) {
#if VEC_BYTES == 64
    return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) != 0;
#elif VEC_BYTES == 32
    return !_mm256_testz_si256((__m256i)v, (__m256i)v);
#elif defined(__SSE2__)
    return _mm_movemask_epi8(_mm_cmpeq_epi8((__m128i)v, _mm_setzero_si128())) != 0xffff;
#else
    uint64_t words[VEC_BYTES / 8], any = 0;
    memcpy(words, &v, VEC_BYTES);
    for (size_t i = 0; i < VEC_BYTES / 8; i++) any |= words[i];
    return any != 0;
#endif
}

/* ---- building blocks of vec_gt, vec_select, vec_flag, where comparisons give vectors ---- */

#define DEFINE_GT_BY_COMPARE                                                                      \
    typedef vec_t vec_mask;                                                                       \
    INLINE vec_mask vec_gt_i16(vec_t a, vec_t b) { return (vec_t)((vec_i16)a > (vec_i16)b); }     \
    INLINE vec_mask vec_gt_i32(vec_t a, vec_t b) { return (vec_t)((vec_i32)a > (vec_i32)b); }     \
    INLINE vec_mask vec_gt_i64(vec_t a, vec_t b) { return (vec_t)((vec_i64)a > (vec_i64)b); }     \
    INLINE vec_mask vec_gt_f32(vec_t a, vec_t b) { return (vec_t)((vec_f32)a > (vec_f32)b); }     \
    INLINE vec_mask vec_gt_f64(vec_t a, vec_t b) { return (vec_t)((vec_f64)a > (vec_f64)b); }
/* One selection for all widths: vec_select_i16 is the header's own. */
#define DEFINE_WIDER_SELECTS                                                                      \
    INLINE vec_t vec_select_i32(vec_mask m, vec_t a, vec_t b) { return vec_select_i16(m, a, b); } \
    INLINE vec_t vec_select_i64(vec_mask m, vec_t a, vec_t b) { return vec_select_i16(m, a, b); }
#define DEFINE_SELECT_BY_BITS                                                                     \
    INLINE vec_t vec_select_i16(vec_mask m, vec_t a, vec_t b) { return (a & m) | (b & ~m); }      \
    DEFINE_WIDER_SELECTS
#define DEFINE_FLAG_AS_VECTOR                                                                     \
    typedef vec_t vec_flag;                                                                       \
    INLINE vec_flag flag_none(void) { return (vec_flag){0}; }                                     \
    INLINE int flag_any(vec_flag f) { return vec_any(f); }                                        \
    INLINE vec_flag flag_or(vec_flag a, vec_flag b) { return a | b; }
#define DEFINE_NAN_IN_BY_COMPARE                                                                  \
    INLINE vec_flag nan_in_f32(vec_t a, vec_t b) {                                                \
        return (vec_t)((vec_f32)a != (vec_f32)a) | (vec_t)((vec_f32)b != (vec_f32)b);             \
    }                                                                                             \
    INLINE vec_flag nan_in_f64(vec_t a, vec_t b) {                                                \
        return (vec_t)((vec_f64)a != (vec_f64)a) | (vec_t)((vec_f64)b != (vec_f64)b);             \
    }

/* ---- building blocks of vec_widen, for vectors of 16 bytes ---- */

#define DEFINE_WIDEN_BY_SHUFFLE                                                                   \
    INLINE void vec_widen_i32(vec_t v, vec_t *to) {                                               \
        to[0] = SHUFFLE_HALVES(vec_u32, v, (vec_u32){0}, 0, 4, 1, 5);                             \
        to[1] = SHUFFLE_HALVES(vec_u32, v, (vec_u32){0}, 2, 6, 3, 7);                             \
    }                                                                                             \
    INLINE void vec_widen_i16(vec_t v, vec_t *to) {                                               \
        const vec_u16 zero = {0};                                                                 \
        vec_widen_i32(SHUFFLE_HALVES(vec_u16, v, zero, 0, 8, 1, 9, 2, 10, 3, 11), to);            \
        vec_widen_i32(SHUFFLE_HALVES(vec_u16, v, zero, 4, 12, 5, 13, 6, 14, 7, 15), to + 2);      \
    }

#endif
