/* Rows of elements of every type as floats or doubles, with every stride-th one next to another. */
#ifndef FASTPOOL_ROWS_H
#define FASTPOOL_ROWS_H

#include "loops.h"
#include "wide.h"

/* ---- as floats: elements of up to 24 bits ---- */

#define DEFINE_TO_FLOATS_OF(name, T, VALUE)                                                       \
    static VECTORISED void to_floats_##name(float *to, const T *from, ptrdiff_t n) {              \
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (float)(VALUE);                                 \
    }
DEFINE_TO_FLOATS_OF(bool, bool_t_, from[i].bits != 0)
/* (never called: these have more bits) */
DEFINE_TO_FLOATS_OF(f64, double, from[i])
DEFINE_TO_FLOATS_OF(i32, int32_t, from[i]) DEFINE_TO_FLOATS_OF(u32, uint32_t, from[i])
DEFINE_TO_FLOATS_OF(i64, int64_t, from[i]) DEFINE_TO_FLOATS_OF(u64, uint64_t, from[i])

static void to_floats_f32(float *to, const float *from, ptrdiff_t n) {
    const ptrdiff_t lanes = VEC_BYTES / 4;
    ptrdiff_t i = 0;
    for (; i + lanes <= n; i += lanes) vec_store(to + i, vec_load(from + i));
    if (i < n && n >= lanes)
        vec_store(to + n - lanes, vec_load(from + n - lanes));
    else
        for (; i < n; i++) to[i] = from[i];
}

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
#endif
#ifdef TO_FLOATS_LANES
#define DEFINE_TO_FLOATS_BY_LANES(name, T)                                                        \
    static void to_floats_##name(float *to, const T *from, ptrdiff_t n) {                         \
        ptrdiff_t i = 0;                                                                          \
        for (; i + TO_FLOATS_LANES <= n; i += TO_FLOATS_LANES)                                    \
            vec_store(to + i, floats_##name(from + i));                                           \
        if (i < n && n >= TO_FLOATS_LANES) {                                                      \
            i = n - TO_FLOATS_LANES;                                                              \
            vec_store(to + i, floats_##name(from + i));                                           \
        } else                                                                                    \
            for (; i < n; i++) to[i] = (float)as_double_##name(from[i]);                          \
    }
#else
#define DEFINE_TO_FLOATS_BY_LANES(name, T) DEFINE_TO_FLOATS_OF(name, T, as_double_##name(from[i]))
#endif
#if defined(__aarch64__) && VEC_BYTES == 16 /* (gcc does not vectorise what it would be in C) */
static void to_floats_f16(float *to, const float16_t_ *from, ptrdiff_t n) {
    ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float16x4_t v;
        memcpy(&v, from + i, sizeof v);
        vec_store(to + i, (vec_t)vcvt_f32_f16(v));
    }
    for (; i < n; i++) to[i] = (float)as_double_f16(from[i]);
}
#else
DEFINE_TO_FLOATS_BY_LANES(f16, float16_t_)
#endif
DEFINE_TO_FLOATS_BY_LANES(bf16, bfloat16_t_)
DEFINE_TO_FLOATS_BY_LANES(i8, int8_t) DEFINE_TO_FLOATS_BY_LANES(u8, uint8_t)
DEFINE_TO_FLOATS_BY_LANES(i16, int16_t) DEFINE_TO_FLOATS_BY_LANES(u16, uint16_t)

/* ---- as doubles; `adds` to what is there ---- */

#define DEFINE_TO_DOUBLES(name, T)                                                                \
    static void to_doubles_##name(double *to, const T *from, ptrdiff_t n, int adds) {             \
        ptrdiff_t i = 0;                                                                          \
        for (; i + WIDE <= n; i += WIDE) {                                                        \
            vec_t v = wide_##name(from + i);                                                      \
            vec_store(to + i, adds ? wide_add(v, vec_load(to + i)) : v);                          \
        }                                                                                         \
        for (; i < n; i++)                                                                        \
            to[i] = adds ? to[i] + as_double_##name(from[i]) : as_double_##name(from[i]);         \
    }
DEFINE_TO_DOUBLES(f32, float) DEFINE_TO_DOUBLES(f64, double)
DEFINE_TO_DOUBLES(f16, float16_t_) DEFINE_TO_DOUBLES(bf16, bfloat16_t_)
DEFINE_TO_DOUBLES(i8, int8_t) DEFINE_TO_DOUBLES(u8, uint8_t)
DEFINE_TO_DOUBLES(i16, int16_t) DEFINE_TO_DOUBLES(u16, uint16_t)
DEFINE_TO_DOUBLES(i32, int32_t) DEFINE_TO_DOUBLES(u32, uint32_t)
DEFINE_TO_DOUBLES(i64, int64_t) DEFINE_TO_DOUBLES(u64, uint64_t)
DEFINE_TO_DOUBLES(bool, bool_t_)

/* Set n elements of a row of doubles or floats. */
#define to_row(to, from, n, in_doubles, adds)                                                     \
    ((in_doubles) ? BY_ELEMENT(to_doubles, from)((double *)(to), from, n, adds)                   \
                  : BY_ELEMENT(to_floats, from)((float *)(to), from, n))

/* ---- every stride-th element: element i * stride + r goes to place i of part r, if wanted ---- */

/* Return up to a vector of n elements; the others are 0. */
#define DEFINE_SPLIT(name, T)                                                                     \
    INLINE vec_t load_rest_##name(const T *from, ptrdiff_t n) {                                   \
        if (n >= VEC_BYTES / (ptrdiff_t)sizeof(T)) return vec_load(from);                         \
        return n > 0 ? vec_load_part(from, (size_t)n * sizeof(T)) : (vec_t){0};                   \
    }                                                                                             \
    static void split_##name(T *const *parts, const T *from, ptrdiff_t n, ptrdiff_t stride) {     \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        if (stride == 2) { /* (zeros come after the last one) */                                  \
            for (ptrdiff_t i = 0; i < n; i += 2 * lanes) {                                        \
                vec_t low = load_rest_##name(from + i, n - i);                                    \
                vec_t high = load_rest_##name(from + i + lanes, n - i - lanes);                   \
                if (parts[0]) vec_store(parts[0] + i / 2, vec_concat_even(low, high, from));      \
                if (parts[1]) vec_store(parts[1] + i / 2, vec_concat_odd(low, high, from));       \
            }                                                                                     \
            return;                                                                               \
        }                                                                                         \
        for (ptrdiff_t r = 0; r < stride; r++) {                                                  \
            T *to = parts[r];                                                                     \
            for (ptrdiff_t j = r; to && j < n; j += stride) *to++ = from[j];                      \
        }                                                                                         \
    }
DEFINE_SPLIT(f32, float) DEFINE_SPLIT(f64, double)

/* The same for pixels of `size` bytes. */
static void split_pixels(char *const *parts, const char *from, ptrdiff_t n, ptrdiff_t stride,
                         ptrdiff_t size) {
    for (ptrdiff_t r = 0; r < stride; r++) {
        const char *at = from + r * size, *last = from + (n - stride) * size;
        char *to = parts[r];
        if (!to || r >= n) continue;
        if (size <= 16)
            for (; at < last; at += stride * size, to += size) memcpy(to, at, 16);
        for (; at < last; at += stride * size, to += size) /* (what comes next is overwritten) */
            for (ptrdiff_t i = 0; i < size; i += 16) memcpy(to + i, at + i, 16);
        memcpy(to, at, (size_t)size);
    }
}

#endif
