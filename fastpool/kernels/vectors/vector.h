/* The vectors of one build: what the kernels in _kernels.pyx say, in the words of this instruction set.
 *
 * A vec_t is VEC_BYTES of bits without an element type. Operations that need one take a pointer as their last
 * argument and look only at what it points to (`vec_max(a, b, (float *)p)`), so that one fused function in Cython
 * serves every dtype. Written with the vector extensions of gcc and clang; intrinsics stand only where those two
 * were seen to emit something worse (objdump: CONTRIBUTING.md).
 */
#ifndef FASTPOOL_VECTOR_H
#define FASTPOOL_VECTOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define VEC_BYTES 64
#elif defined(__AVX2__)
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#error "fastpool needs gcc or clang (clang-cl on Windows): vector.h uses their vector extensions"
#endif

#define INLINE static inline __attribute__((always_inline, unused))
#define VECTOR(T, bytes) T __attribute__((vector_size(bytes)))

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

/* The element type of a pointer picks the operation; `f` is completed to f_f32, f_i8, ... */
#define BY_TYPE(f, p)                                                                                              \
    _Generic(*(p), float: f##_f32, double: f##_f64, int8_t: f##_i8, uint8_t: f##_u8, int16_t: f##_i16,             \
             uint16_t: f##_u16, int32_t: f##_i32, uint32_t: f##_u32, int64_t: f##_i64, uint64_t: f##_u64)
#define BY_KEY(f, p) \
    _Generic(*(p), int16_t: f##_i16, int32_t: f##_i32, int64_t: f##_i64, float: f##_i32, double: f##_i64)

/* Only ever called in the baseline build, before another is loaded. */
INLINE int cpu_has(const char *feature) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (!strcmp(feature, "avx2")) return __builtin_cpu_supports("avx2") != 0;
    if (!strcmp(feature, "bmi2")) return __builtin_cpu_supports("bmi2") != 0;
    if (!strcmp(feature, "avx512f")) return __builtin_cpu_supports("avx512f") != 0;
    if (!strcmp(feature, "avx512bw")) return __builtin_cpu_supports("avx512bw") != 0;
    if (!strcmp(feature, "avx512dq")) return __builtin_cpu_supports("avx512dq") != 0;
    if (!strcmp(feature, "avx512vl")) return __builtin_cpu_supports("avx512vl") != 0;
#endif
    (void)feature;
    return 0;
}

/* ---- load and store, at any address; `part` touches only the first n bytes (n < VEC_BYTES) ---- */

INLINE vec_t vec_load(const void *p) { vec_t v; memcpy(&v, p, VEC_BYTES); return v; }
INLINE void vec_store(void *p, vec_t v) { memcpy(p, &v, VEC_BYTES); }

#if VEC_BYTES == 64
INLINE vec_t vec_load_part(const void *p, size_t n) {
    return (vec_t)_mm512_maskz_loadu_epi8(_bzhi_u64(~0ULL, (unsigned)n), p);
}
INLINE void vec_store_part(void *p, vec_t v, size_t n) {
    _mm512_mask_storeu_epi8(p, _bzhi_u64(~0ULL, (unsigned)n), (__m512i)v);
}
#else
/* Pieces of halving size instead of memcpy(n): a call with an unknown length costs more than the pooling. */
INLINE vec_t vec_load_part(const void *p, size_t n) {
    vec_t v = {0};
    const char *from = (const char *)p;
    char *to = (char *)&v;
    size_t at = 0;
#if VEC_BYTES == 32
    if (n & 16) { memcpy(to, from, 16); at = 16; }
#endif
    if (n & 8) { memcpy(to + at, from + at, 8); at += 8; }
    if (n & 4) { memcpy(to + at, from + at, 4); at += 4; }
    if (n & 2) { memcpy(to + at, from + at, 2); at += 2; }
    if (n & 1) to[at] = from[at];
    return v;
}
INLINE void vec_store_part(void *p, vec_t v, size_t n) {
    const char *from = (const char *)&v;
    char *to = (char *)p;
    size_t at = 0;
#if VEC_BYTES == 32
    if (n & 16) { memcpy(to, from, 16); at = 16; }
#endif
    if (n & 8) { memcpy(to + at, from + at, 8); at += 8; }
    if (n & 4) { memcpy(to + at, from + at, 4); at += 4; }
    if (n & 2) { memcpy(to + at, from + at, 2); at += 2; }
    if (n & 1) to[at] = from[at];
}
#endif

/* ---- load at an edge: lanes that are not inside get what `outside` holds, and their memory is not read ----
 * One bit per byte. Kernels that load like this in every row are for builds with VEC_MASKS. */

typedef uint64_t byte_mask;
INLINE byte_mask byte_mask_below(ptrdiff_t n) { return n <= 0 ? 0 : n >= VEC_BYTES ? ~0ULL >> (64 - VEC_BYTES) : ~(~0ULL << n); }
INLINE byte_mask vec_mask_range(ptrdiff_t first, ptrdiff_t end) { return byte_mask_below(end) & ~byte_mask_below(first); }
#if VEC_BYTES == 64
#define VEC_MASKS 1
INLINE vec_t vec_masked_load_or(const void *p, byte_mask inside, vec_t outside) {
    return (vec_t)_mm512_mask_loadu_epi8((__m512i)outside, inside, p);
}
#else
#define VEC_MASKS 0
INLINE vec_t vec_masked_load_or(const void *p, byte_mask inside, vec_t outside) {
    for (size_t i = 0; i < VEC_BYTES; i++)
        if (inside >> i & 1) ((char *)&outside)[i] = ((const char *)p)[i];
    return outside;
}
#endif

/* ---- store the elements that `chosen` names, one bit per byte, side by side; returns how many there were. With `room` for
 * a whole vector more may be written behind them. ---- */

#if VEC_MASKS
INLINE __mmask16 chosen_lanes(uint64_t chosen, size_t size) {
    return (__mmask16)_pext_u64(chosen, size == 1 ? 0xffff : size == 2 ? 0x55555555 : size == 4 ? 0x1111111111111111 : 0x0101010101010101);
}
INLINE size_t vec_compress_store(void *p, vec_t v, byte_mask chosen, size_t size, int room) {
    char *to = (char *)p;
    if (size >= 4) {
        __mmask16 some = chosen_lanes(chosen, size);
        __m512i packed = size == 4 ? _mm512_maskz_compress_epi32(some, (__m512i)v) : _mm512_maskz_compress_epi64((__mmask8)some, (__m512i)v);
        if (room) vec_store(to, (vec_t)packed); /* half the time of a masked store */
        else vec_store_part(to, (vec_t)packed, (size_t)__builtin_popcountll(chosen));
    } else { /* sixteen at a time, as 32-bit integers: narrower ones cannot be compressed */
        char bytes[VEC_BYTES];
        vec_store(bytes, v);
        for (size_t i = 0; i < VEC_BYTES / size / 16; i++) {
            __mmask16 some = chosen_lanes(chosen >> (16 * size * i), size);
            __m512i wide = size == 1 ? _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes + i))
                                     : _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)bytes + i));
            __mmask16 count = (__mmask16)_bzhi_u32(0xffff, (unsigned)__builtin_popcount(some));
            wide = _mm512_maskz_compress_epi32(some, wide);
            if (room && size == 1) _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(wide));
            else if (room) _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16(wide));
            else if (size == 1) _mm512_mask_cvtepi32_storeu_epi8(to, count, wide);
            else _mm512_mask_cvtepi32_storeu_epi16(to, count, wide);
            to += size * (size_t)__builtin_popcount(some);
        }
    }
    return (size_t)__builtin_popcountll(chosen) / size;
}
#else
INLINE size_t vec_compress_store(void *p, vec_t v, byte_mask chosen, size_t size, int room) {
    char *to = (char *)p;
    (void)room;
    for (size_t i = 0; i < VEC_BYTES; i++)
        if (chosen >> i & 1) *to++ = ((const char *)&v)[i];
    return (size_t)(to - (char *)p) / size;
}
#endif

/* ---- max: for floats only where no operand is NaN (the kernels look for NaN first) ---- */

#define MAX_BY_INTRINSIC(tag, type, call) \
    INLINE vec_t vec_max_##tag(vec_t a, vec_t b) { return (vec_t)call((type)a, (type)b); }
#define MAX_BY_COMPARE(tag)                                      \
    INLINE vec_t vec_max_##tag(vec_t a, vec_t b) {               \
        vec_t greater = (vec_t)((vec_##tag)a > (vec_##tag)b);    \
        return (a & greater) | (b & ~greater);                   \
    }

#if VEC_BYTES == 64
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
#elif VEC_BYTES == 32
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
#else
#if defined(__SSE2__)
MAX_BY_INTRINSIC(f32, __m128, _mm_max_ps)
MAX_BY_INTRINSIC(f64, __m128d, _mm_max_pd)
MAX_BY_INTRINSIC(u8, __m128i, _mm_max_epu8)
MAX_BY_INTRINSIC(i16, __m128i, _mm_max_epi16)
MAX_BY_COMPARE(i8)
MAX_BY_COMPARE(u16)
MAX_BY_COMPARE(i32)
MAX_BY_COMPARE(u32)
#elif defined(__aarch64__)
MAX_BY_INTRINSIC(f32, float32x4_t, vmaxq_f32)
MAX_BY_INTRINSIC(f64, float64x2_t, vmaxq_f64)
MAX_BY_INTRINSIC(i8, int8x16_t, vmaxq_s8)
MAX_BY_INTRINSIC(u8, uint8x16_t, vmaxq_u8)
MAX_BY_INTRINSIC(i16, int16x8_t, vmaxq_s16)
MAX_BY_INTRINSIC(u16, uint16x8_t, vmaxq_u16)
MAX_BY_INTRINSIC(i32, int32x4_t, vmaxq_s32)
MAX_BY_INTRINSIC(u32, uint32x4_t, vmaxq_u32)
#else
MAX_BY_COMPARE(f32)
MAX_BY_COMPARE(f64)
MAX_BY_COMPARE(i8)
MAX_BY_COMPARE(u8)
MAX_BY_COMPARE(i16)
MAX_BY_COMPARE(u16)
MAX_BY_COMPARE(i32)
MAX_BY_COMPARE(u32)
#endif
MAX_BY_COMPARE(i64)
MAX_BY_COMPARE(u64)
#endif
#define vec_max(a, b, p) BY_TYPE(vec_max, p)(a, b)

/* ---- narrow vectors: 16 bytes, of which only the first `bytes` are read and written (16, 8, 4, 2 or 1) ---- */

typedef VECTOR(long long, 16) narrow_t;
#define NARROW_COPY(to, from)                \
    if (bytes == 16) memcpy(to, from, 16);   \
    else if (bytes == 8) memcpy(to, from, 8); \
    else if (bytes == 4) memcpy(to, from, 4); \
    else if (bytes == 2) memcpy(to, from, 2); \
    else memcpy(to, from, 1);
INLINE narrow_t narrow_load(const void *p, size_t bytes) { narrow_t v = {0}; NARROW_COPY(&v, p) return v; }
INLINE void narrow_store(void *p, narrow_t v, size_t bytes) { NARROW_COPY(p, &v) }
#if VEC_BYTES == 16
#define narrow_max vec_max
#else
#define NARROW_BY_INTRINSIC(tag, type, call) \
    INLINE narrow_t narrow_max_##tag(narrow_t a, narrow_t b) { return (narrow_t)call((type)a, (type)b); }
#define NARROW_BY_COMPARE(tag, T)                                                      \
    INLINE narrow_t narrow_max_##tag(narrow_t a, narrow_t b) {                         \
        typedef VECTOR(T, 16) typed;                                                   \
        narrow_t greater = (narrow_t)((typed)a > (typed)b);                            \
        return (a & greater) | (b & ~greater);                                         \
    }
NARROW_BY_INTRINSIC(f32, __m128, _mm_max_ps)
NARROW_BY_INTRINSIC(f64, __m128d, _mm_max_pd)
NARROW_BY_INTRINSIC(i8, __m128i, _mm_max_epi8)
NARROW_BY_INTRINSIC(u8, __m128i, _mm_max_epu8)
NARROW_BY_INTRINSIC(i16, __m128i, _mm_max_epi16)
NARROW_BY_INTRINSIC(u16, __m128i, _mm_max_epu16)
NARROW_BY_INTRINSIC(i32, __m128i, _mm_max_epi32)
NARROW_BY_INTRINSIC(u32, __m128i, _mm_max_epu32)
NARROW_BY_COMPARE(i64, int64_t)
NARROW_BY_COMPARE(u64, uint64_t)
#define narrow_max(a, b, p) BY_TYPE(narrow_max, p)(a, b)
#endif

/* ---- the elements at even places of `lo` followed by `hi`, by element size ---- */

#define EVEN_2(k) k, k + 2
#define EVEN_4(k) EVEN_2(k), EVEN_2(k + 4)
#define EVEN_8(k) EVEN_4(k), EVEN_4(k + 8)
#define EVEN_16(k) EVEN_8(k), EVEN_8(k + 16)
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(type, a, b, ...) ((vec_t)__builtin_shufflevector((type)a, (type)b, __VA_ARGS__))
#else
#define SHUFFLE(type, a, b, ...) ((vec_t)__builtin_shuffle((type)a, (type)b, (type){__VA_ARGS__}))
#endif

#if VEC_BYTES == 64
INLINE vec_t vec_concat_even_1(vec_t lo, vec_t hi) {
    const __m512i low = _mm512_set1_epi16(0xff), order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    __m512i packed = _mm512_packus_epi16(_mm512_and_si512((__m512i)lo, low), _mm512_and_si512((__m512i)hi, low));
    return (vec_t)_mm512_permutexvar_epi64(order, packed);
}
INLINE vec_t vec_concat_even_2(vec_t lo, vec_t hi) { return SHUFFLE(vec_u16, lo, hi, EVEN_16(0), EVEN_16(32)); }
INLINE vec_t vec_concat_even_4(vec_t lo, vec_t hi) { return SHUFFLE(vec_u32, lo, hi, EVEN_16(0)); }
INLINE vec_t vec_concat_even_8(vec_t lo, vec_t hi) { return SHUFFLE(vec_u64, lo, hi, EVEN_8(0)); }
#elif VEC_BYTES == 32
INLINE vec_t vec_concat_even_1(vec_t lo, vec_t hi) {
    const __m256i low = _mm256_set1_epi16(0xff);
    __m256i packed = _mm256_packus_epi16(_mm256_and_si256((__m256i)lo, low), _mm256_and_si256((__m256i)hi, low));
    return (vec_t)_mm256_permute4x64_epi64(packed, 0xd8);
}
INLINE vec_t vec_concat_even_2(vec_t lo, vec_t hi) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    __m256i packed = _mm256_packus_epi32(_mm256_and_si256((__m256i)lo, low), _mm256_and_si256((__m256i)hi, low));
    return (vec_t)_mm256_permute4x64_epi64(packed, 0xd8);
}
INLINE vec_t vec_concat_even_4(vec_t lo, vec_t hi) { return SHUFFLE(vec_u32, lo, hi, EVEN_8(0)); }
INLINE vec_t vec_concat_even_8(vec_t lo, vec_t hi) { return SHUFFLE(vec_u64, lo, hi, EVEN_4(0)); }
#else
#if defined(__SSE2__)
INLINE vec_t vec_concat_even_1(vec_t lo, vec_t hi) {
    const __m128i low = _mm_set1_epi16(0xff);
    return (vec_t)_mm_packus_epi16(_mm_and_si128((__m128i)lo, low), _mm_and_si128((__m128i)hi, low));
}
INLINE vec_t vec_concat_even_2(vec_t lo, vec_t hi) {
    __m128i a = _mm_srai_epi32(_mm_slli_epi32((__m128i)lo, 16), 16);
    __m128i b = _mm_srai_epi32(_mm_slli_epi32((__m128i)hi, 16), 16);
    return (vec_t)_mm_packs_epi32(a, b);
}
#else
INLINE vec_t vec_concat_even_1(vec_t lo, vec_t hi) { return SHUFFLE(vec_u8, lo, hi, EVEN_16(0)); }
INLINE vec_t vec_concat_even_2(vec_t lo, vec_t hi) { return SHUFFLE(vec_u16, lo, hi, EVEN_8(0)); }
#endif
INLINE vec_t vec_concat_even_4(vec_t lo, vec_t hi) { return SHUFFLE(vec_u32, lo, hi, EVEN_4(0)); }
INLINE vec_t vec_concat_even_8(vec_t lo, vec_t hi) { return SHUFFLE(vec_u64, lo, hi, EVEN_2(0)); }
#endif
#define vec_concat_even(lo, hi, p)                                                 \
    (sizeof(*(p)) == 1 ? vec_concat_even_1(lo, hi) : sizeof(*(p)) == 2 ? vec_concat_even_2(lo, hi) : \
     sizeof(*(p)) == 4 ? vec_concat_even_4(lo, hi) : vec_concat_even_8(lo, hi))

/* ---- the elements at odd places ---- */

#define ODD_2(k) k + 1, k + 3
#define ODD_4(k) ODD_2(k), ODD_2(k + 4)
#define ODD_8(k) ODD_4(k), ODD_4(k + 8)
#define ODD_16(k) ODD_8(k), ODD_8(k + 16)
INLINE vec_t vec_concat_odd_1(vec_t lo, vec_t hi) { return vec_concat_even_1((vec_t)((vec_u16)lo >> 8), (vec_t)((vec_u16)hi >> 8)); }
INLINE vec_t vec_concat_odd_2(vec_t lo, vec_t hi) { return vec_concat_even_2((vec_t)((vec_u32)lo >> 16), (vec_t)((vec_u32)hi >> 16)); }
#if VEC_BYTES == 64
INLINE vec_t vec_concat_odd_4(vec_t lo, vec_t hi) { return SHUFFLE(vec_u32, lo, hi, ODD_16(0)); }
INLINE vec_t vec_concat_odd_8(vec_t lo, vec_t hi) { return SHUFFLE(vec_u64, lo, hi, ODD_8(0)); }
#elif VEC_BYTES == 32
INLINE vec_t vec_concat_odd_4(vec_t lo, vec_t hi) { return SHUFFLE(vec_u32, lo, hi, ODD_8(0)); }
INLINE vec_t vec_concat_odd_8(vec_t lo, vec_t hi) { return SHUFFLE(vec_u64, lo, hi, ODD_4(0)); }
#else
INLINE vec_t vec_concat_odd_4(vec_t lo, vec_t hi) { return SHUFFLE(vec_u32, lo, hi, ODD_4(0)); }
INLINE vec_t vec_concat_odd_8(vec_t lo, vec_t hi) { return SHUFFLE(vec_u64, lo, hi, ODD_2(0)); }
#endif
#define vec_concat_odd(lo, hi, p)                                                \
    (sizeof(*(p)) == 1 ? vec_concat_odd_1(lo, hi) : sizeof(*(p)) == 2 ? vec_concat_odd_2(lo, hi) : \
     sizeof(*(p)) == 4 ? vec_concat_odd_4(lo, hi) : vec_concat_odd_8(lo, hi))

/* ---- one element on: all of `a` but its first, then the first of `b` ---- */

#if VEC_BYTES == 64
#define SHIFT_IN(a, b, n) ((vec_t)_mm512_alignr_epi8(_mm512_alignr_epi64((__m512i)b, (__m512i)a, 2), (__m512i)a, n))
#elif VEC_BYTES == 32
#define SHIFT_IN(a, b, n) ((vec_t)_mm256_alignr_epi8(_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x21), (__m256i)a, n))
#elif defined(__SSE2__)
#define SHIFT_IN(a, b, n) ((vec_t)_mm_or_si128(_mm_srli_si128((__m128i)a, n), _mm_slli_si128((__m128i)b, 16 - n)))
#else
#define SHIFT_IN(a, b, n) SHUFFLE(vec_u8, a, b, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, \
                              n + 11, n + 12, n + 13, n + 14, n + 15)
#endif
INLINE vec_t vec_shift_in_1(vec_t a, vec_t b) { return SHIFT_IN(a, b, 1); }
INLINE vec_t vec_shift_in_2(vec_t a, vec_t b) { return SHIFT_IN(a, b, 2); }
#if VEC_BYTES == 64
INLINE vec_t vec_shift_in_4(vec_t a, vec_t b) { return (vec_t)_mm512_alignr_epi32((__m512i)b, (__m512i)a, 1); }
INLINE vec_t vec_shift_in_8(vec_t a, vec_t b) { return (vec_t)_mm512_alignr_epi64((__m512i)b, (__m512i)a, 1); }
#else
INLINE vec_t vec_shift_in_4(vec_t a, vec_t b) { return SHIFT_IN(a, b, 4); }
INLINE vec_t vec_shift_in_8(vec_t a, vec_t b) { return SHIFT_IN(a, b, 8); }
#endif
#define vec_shift_in(a, b, p)                                                \
    (sizeof(*(p)) == 1 ? vec_shift_in_1(a, b) : sizeof(*(p)) == 2 ? vec_shift_in_2(a, b) : \
     sizeof(*(p)) == 4 ? vec_shift_in_4(a, b) : vec_shift_in_8(a, b))

/* ---- lanes: the integers, or the floats and integers as wide, that carry (key, position) pairs ---- */

#if VEC_BYTES == 64
typedef uint64_t vec_mask;
INLINE vec_mask vec_gt_i16(vec_t a, vec_t b) { return _mm512_cmpgt_epi16_mask((__m512i)a, (__m512i)b); }
INLINE vec_mask vec_gt_i32(vec_t a, vec_t b) { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
INLINE vec_mask vec_gt_i64(vec_t a, vec_t b) { return _mm512_cmpgt_epi64_mask((__m512i)a, (__m512i)b); }
INLINE vec_mask vec_gt_f32(vec_t a, vec_t b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ); }
INLINE vec_mask vec_gt_f64(vec_t a, vec_t b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ); }
INLINE vec_t vec_select_i16(vec_mask m, vec_t a, vec_t b) { return (vec_t)_mm512_mask_mov_epi16((__m512i)b, (__mmask32)m, (__m512i)a); }
INLINE vec_t vec_select_i32(vec_mask m, vec_t a, vec_t b) { return (vec_t)_mm512_mask_mov_epi32((__m512i)b, (__mmask16)m, (__m512i)a); }
INLINE vec_t vec_select_i64(vec_mask m, vec_t a, vec_t b) { return (vec_t)_mm512_mask_mov_epi64((__m512i)b, (__mmask8)m, (__m512i)a); }
#else
typedef vec_t vec_mask;
INLINE vec_mask vec_gt_i16(vec_t a, vec_t b) { return (vec_t)((vec_i16)a > (vec_i16)b); }
INLINE vec_mask vec_gt_i32(vec_t a, vec_t b) { return (vec_t)((vec_i32)a > (vec_i32)b); }
INLINE vec_mask vec_gt_i64(vec_t a, vec_t b) { return (vec_t)((vec_i64)a > (vec_i64)b); }
INLINE vec_mask vec_gt_f32(vec_t a, vec_t b) { return (vec_t)((vec_f32)a > (vec_f32)b); }
INLINE vec_mask vec_gt_f64(vec_t a, vec_t b) { return (vec_t)((vec_f64)a > (vec_f64)b); }
#if VEC_BYTES == 32
INLINE vec_t vec_select_i16(vec_mask m, vec_t a, vec_t b) { return (vec_t)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m); }
#else
INLINE vec_t vec_select_i16(vec_mask m, vec_t a, vec_t b) { return (a & m) | (b & ~m); }
#endif
INLINE vec_t vec_select_i32(vec_mask m, vec_t a, vec_t b) { return vec_select_i16(m, a, b); }
INLINE vec_t vec_select_i64(vec_mask m, vec_t a, vec_t b) { return vec_select_i16(m, a, b); }
#endif
#define vec_gt(a, b, p)                                                                             \
    _Generic(*(p), int16_t: vec_gt_i16, int32_t: vec_gt_i32, int64_t: vec_gt_i64, float: vec_gt_f32, \
             double: vec_gt_f64)(a, b)
#define vec_select(m, a, b, p) BY_KEY(vec_select, p)(m, a, b) /* a where m, else b */

INLINE vec_t vec_add_i16(vec_t a, vec_t b) { return (vec_t)((vec_u16)a + (vec_u16)b); } /* unsigned: wraps */
INLINE vec_t vec_add_i32(vec_t a, vec_t b) { return (vec_t)((vec_u32)a + (vec_u32)b); }
INLINE vec_t vec_add_i64(vec_t a, vec_t b) { return (vec_t)((vec_u64)a + (vec_u64)b); }
#define vec_add(a, b, p) BY_KEY(vec_add, p)(a, b)
#define vec_max_int(a, b, p) BY_KEY(vec_max, p)(a, b) /* the greater of two positions */

INLINE vec_t vec_set_i16(int64_t x) { return (vec_t)((vec_u16){0} + (uint16_t)x); }
INLINE vec_t vec_set_i32(int64_t x) { return (vec_t)((vec_u32){0} + (uint32_t)x); }
INLINE vec_t vec_set_i64(int64_t x) { return (vec_t)((vec_u64){0} + (uint64_t)x); }
#define vec_set(x, p) BY_KEY(vec_set, p)(x)

/* ---- the value that loses against every other: what margins hold ---- */

INLINE float lowest_f32(void) { return -INFINITY; }
INLINE double lowest_f64(void) { return -INFINITY; }
INLINE int8_t lowest_i8(void) { return INT8_MIN; }
INLINE uint8_t lowest_u8(void) { return 0; }
INLINE int16_t lowest_i16(void) { return INT16_MIN; }
INLINE uint16_t lowest_u16(void) { return 0; }
INLINE int32_t lowest_i32(void) { return INT32_MIN; }
INLINE uint32_t lowest_u32(void) { return 0; }
INLINE int64_t lowest_i64(void) { return INT64_MIN; }
INLINE uint64_t lowest_u64(void) { return 0; }
#define lowest(p) BY_TYPE(lowest, p)()

#define DEFINE_VEC_LOWEST(tag)                                                                       \
    INLINE vec_t vec_lowest_##tag(void) { return (vec_t)((vec_##tag){0} + lowest_##tag()); }
DEFINE_VEC_LOWEST(f32) DEFINE_VEC_LOWEST(f64)
DEFINE_VEC_LOWEST(i8) DEFINE_VEC_LOWEST(u8) DEFINE_VEC_LOWEST(i16) DEFINE_VEC_LOWEST(u16)
DEFINE_VEC_LOWEST(i32) DEFINE_VEC_LOWEST(u32) DEFINE_VEC_LOWEST(i64) DEFINE_VEC_LOWEST(u64)
#define vec_lowest(p) BY_TYPE(vec_lowest, p)()

/* ---- the maximum of a vector's lanes, as the first element of a narrow vector ---- */

#define vec_reduce_max(v, p) ({                                                                            \
    narrow_t parts_[VEC_BYTES / 16], best_;                                                            \
    vec_t v_ = (v);                                                                                    \
    memcpy(parts_, &v_, VEC_BYTES);                                                                    \
    best_ = parts_[0];                                                                                 \
    for (int i_ = 1; i_ < VEC_BYTES / 16; i_++) best_ = narrow_max(best_, parts_[i_], p);              \
    best_ = narrow_max(best_, ((narrow_t){best_[1], best_[1]}), p);                                    \
    if (sizeof(*(p)) <= 4) best_ = narrow_max(best_, best_ >> 32, p);                                  \
    if (sizeof(*(p)) <= 2) best_ = narrow_max(best_, best_ >> 16, p);                                  \
    if (sizeof(*(p)) == 1) best_ = narrow_max(best_, best_ >> 8, p);                                   \
    best_; })

#endif
