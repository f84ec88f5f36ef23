/* Rows of elements of every type as floats or doubles, with every stride-th one next to another. */
#ifndef FASTPOOL_ROWS_H
#define FASTPOOL_ROWS_H

#include "loops.h"
#include "wide.h"

/* ---- as floats: elements of up to 24 bits ---- */

#define DEFINE_TO_FLOATS(name, T)                                                                 \
    static VECTORISED void to_floats_##name(float *to, const T *from, ptrdiff_t n) {              \
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (float)as_double_##name(from[i]);               \
    }
#define DEFINE_TO_FLOATS_OF(name, T, VALUE)                                                       \
    static VECTORISED void to_floats_##name(float *to, const T *from, ptrdiff_t n) {              \
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (float)(VALUE);                                 \
    }
DEFINE_TO_FLOATS_OF(i8, int8_t, from[i]) DEFINE_TO_FLOATS_OF(u8, uint8_t, from[i])
DEFINE_TO_FLOATS_OF(i16, int16_t, from[i]) DEFINE_TO_FLOATS_OF(u16, uint16_t, from[i])
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

#if VEC_BYTES >= 32
INLINE __m256 eight_f16(__m128i v) { return _mm256_cvtph_ps(v); }
INLINE __m256 eight_bf16(__m128i v) {
    return (__m256)_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16);
}
#define DEFINE_TO_FLOATS_BY_EIGHT(name, T)                                                        \
    static void to_floats_##name(float *to, const T *from, ptrdiff_t n) {                         \
        ptrdiff_t i = 0;                                                                          \
        for (; i + 8 <= n; i += 8)                                                                \
            _mm256_storeu_ps(to + i, eight_##name(_mm_loadu_si128((const __m128i *)(from + i)))); \
        if (i < n && n >= 8)                                                                      \
            _mm256_storeu_ps(to + n - 8,                                                          \
                             eight_##name(_mm_loadu_si128((const __m128i *)(from + n - 8))));     \
        else                                                                                      \
            for (; i < n; i++) to[i] = (float)as_double_##name(from[i]);                          \
    }
DEFINE_TO_FLOATS_BY_EIGHT(f16, float16_t_) DEFINE_TO_FLOATS_BY_EIGHT(bf16, bfloat16_t_)
#else
DEFINE_TO_FLOATS(f16, float16_t_) DEFINE_TO_FLOATS(bf16, bfloat16_t_)
#endif

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

/* ---- every stride-th element: element i * stride + r goes to place i of part r ---- */

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
                vec_store(parts[0] + i / 2, vec_concat_even(low, high, from));                    \
                vec_store(parts[1] + i / 2, vec_concat_odd(low, high, from));                     \
            }                                                                                     \
            return;                                                                               \
        }                                                                                         \
        for (ptrdiff_t r = 0; r < stride; r++) {                                                  \
            T *to = parts[r];                                                                     \
            for (ptrdiff_t j = r; j < n; j += stride) *to++ = from[j];                            \
        }                                                                                         \
    }
DEFINE_SPLIT(f32, float) DEFINE_SPLIT(f64, double)

#endif
