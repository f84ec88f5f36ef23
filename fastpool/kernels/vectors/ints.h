/* Sums in 32 bits, modulo 2**32: of integers as they are, of floats as multiples of a unit. */
#ifndef FASTPOOL_INTS_H
#define FASTPOOL_INTS_H

#include "bytes.h"
#include "quick_quotients.h"
#include "rows.h"

#define INTS (VEC_BYTES / 4)
enum { MOST_ROWS_AT_ONCE = 8 }; /* of the input: more of them are more than processors read ahead */

/* ---- INTS elements ---- */

#define DEFINE_INTS(name, T, expression)                                                          \
    INLINE vec_u32 ints_##name(const T *p) { return (vec_u32)(expression); }
#if VEC_BYTES == 64
DEFINE_INTS(i8, int8_t, _mm512_cvtepi8_epi32(LOAD_BYTES(p)))
DEFINE_INTS(u8, uint8_t, _mm512_cvtepu8_epi32(LOAD_BYTES(p)))
DEFINE_INTS(i16, int16_t, _mm512_cvtepi16_epi32(LOAD_LANES(p)))
DEFINE_INTS(u16, uint16_t, _mm512_cvtepu16_epi32(LOAD_LANES(p)))
#elif VEC_BYTES == 32
DEFINE_INTS(i8, int8_t, _mm256_cvtepi8_epi32(LOAD_BYTES(p)))
DEFINE_INTS(u8, uint8_t, _mm256_cvtepu8_epi32(LOAD_BYTES(p)))
DEFINE_INTS(i16, int16_t, _mm256_cvtepi16_epi32(LOAD_LANES(p)))
DEFINE_INTS(u16, uint16_t, _mm256_cvtepu16_epi32(LOAD_LANES(p)))
#else
#define DEFINE_INTS_BY_LANES(name, T)                                                             \
    INLINE vec_u32 ints_##name(const T *p) {                                                      \
        vec_i32 v;                                                                                \
        for (int i = 0; i < INTS; i++) v[i] = p[i];                                               \
        return (vec_u32)v;                                                                        \
    }
DEFINE_INTS_BY_LANES(i8, int8_t) DEFINE_INTS_BY_LANES(u8, uint8_t)
DEFINE_INTS_BY_LANES(i16, int16_t) DEFINE_INTS_BY_LANES(u16, uint16_t)
#endif
DEFINE_INTS(i32, int32_t, vec_load(p))
/* The first n elements, n < INTS; the others are 0. */
#if VEC_BYTES == 64
#define DEFINE_INTS_PART(name, T, expression)                                                     \
    INLINE vec_u32 ints_part_##name(const T *p, ptrdiff_t n) {                                    \
        const __mmask16 some = (__mmask16)_bzhi_u32(0xffff, (unsigned)n);                         \
        return (vec_u32)(expression);                                                             \
    }
DEFINE_INTS_PART(i8, int8_t, _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(some, p)))
DEFINE_INTS_PART(u8, uint8_t, _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(some, p)))
DEFINE_INTS_PART(i16, int16_t, _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(some, p)))
DEFINE_INTS_PART(u16, uint16_t, _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, p)))
DEFINE_INTS_PART(i32, int32_t, _mm512_maskz_loadu_epi32(some, p))
#else
#define DEFINE_INTS_PART(name, T)                                                                 \
    INLINE vec_u32 ints_part_##name(const T *p, ptrdiff_t n) {                                    \
        vec_i32 v = {0};                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) v[i] = p[i];                                            \
        return (vec_u32)v;                                                                        \
    }
DEFINE_INTS_PART(i8, int8_t) DEFINE_INTS_PART(u8, uint8_t)
DEFINE_INTS_PART(i16, int16_t) DEFINE_INTS_PART(u16, uint16_t)
DEFINE_INTS_PART(i32, int32_t)
#endif

/* Floats of 16 bits, times a scale. That raises the flag for inexact results if these are. */
#if VEC_BYTES == 64
#define NEAREST_INTS(v) (vec_u32)_mm512_cvtps_epi32((__m512)(v))
#elif VEC_BYTES == 32
#define NEAREST_INTS(v) (vec_u32)_mm256_cvtps_epi32((__m256)(v))
#endif
INLINE int32_t int_of_f16(float16_t_ x, float scale) {
    return (int32_t)((float)as_double_f16(x) * scale);
}
INLINE int32_t int_of_bf16(bfloat16_t_ x, float scale) {
    return (int32_t)((float)as_double_bf16(x) * scale);
}
#ifdef NEAREST_INTS
#define DEFINE_SCALED(name, T)                                                                    \
    INLINE vec_u32 scaled_##name(const T *p, float scale) {                                       \
        return NEAREST_INTS((vec_f32)floats_##name(p) * scale);                                   \
    }                                                                                             \
    INLINE vec_u32 scaled_part_##name(const T *p, ptrdiff_t n, float scale) {                     \
        char bytes[VEC_BYTES];                                                                    \
        vec_store(bytes, vec_load_part(p, (size_t)n * 2));                                        \
        return scaled_##name((const T *)bytes, scale);                                            \
    }
#else
#define DEFINE_SCALED(name, T)                                                                    \
    INLINE vec_u32 scaled_part_##name(const T *p, ptrdiff_t n, float scale) {                     \
        vec_i32 v = {0};                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) v[i] = int_of_##name(p[i], scale);                      \
        return (vec_u32)v;                                                                        \
    }                                                                                             \
    INLINE vec_u32 scaled_##name(const T *p, float scale) {                                       \
        return scaled_part_##name(p, INTS, scale);                                                \
    }
#endif
DEFINE_SCALED(f16, float16_t_) DEFINE_SCALED(bf16, bfloat16_t_)
#define DEFINE_UNSCALED(name, T)                                                                  \
    INLINE vec_u32 scaled_##name(const T *p, float scale) { return ints_##name(p); }              \
    INLINE vec_u32 scaled_part_##name(const T *p, ptrdiff_t n, float scale) {                     \
        return ints_part_##name(p, n);                                                            \
    }
DEFINE_UNSCALED(i8, int8_t) DEFINE_UNSCALED(u8, uint8_t)
DEFINE_UNSCALED(i16, int16_t) DEFINE_UNSCALED(u16, uint16_t)
DEFINE_UNSCALED(i32, int32_t)

/* ---- columns: sums of rows, `step` elements apart; a vector after them may be overwritten ---- */

#define DEFINE_INT_ROWS(name, T)                                                                  \
    INLINE void sum_int_run_##name(uint32_t *sums, const T *src, ptrdiff_t n, ptrdiff_t step,     \
                                   ptrdiff_t rows, int adds, float scale) {                       \
        ptrdiff_t i = 0;                                                                          \
        for (; i + INTS <= n; i += INTS) {                                                        \
            vec_u32 sum = {0};                                                                    \
            if (adds) sum = (vec_u32)vec_load(sums + i);                                          \
            for (ptrdiff_t r = 0; r < rows; r++) sum += scaled_##name(src + r * step + i, scale); \
            vec_store(sums + i, (vec_t)sum);                                                      \
        }                                                                                         \
        if (i < n && n >= INTS && !adds) { /* (some sums are made again) */                       \
            vec_u32 sum = {0};                                                                    \
            for (ptrdiff_t r = 0; r < rows; r++)                                                  \
                sum += scaled_##name(src + r * step + n - INTS, scale);                           \
            vec_store(sums + n - INTS, (vec_t)sum);                                               \
        } else if (i < n) {                                                                       \
            vec_u32 sum = {0};                                                                    \
            if (adds) sum = (vec_u32)vec_load(sums + i);                                          \
            for (ptrdiff_t r = 0; r < rows; r++)                                                  \
                sum += scaled_part_##name(src + r * step + i, n - i, scale);                      \
            vec_store(sums + i, (vec_t)sum);                                                      \
        }                                                                                         \
    }                                                                                             \
    static void sum_int_rows_##name(uint32_t *sums, const T *src, ptrdiff_t n, ptrdiff_t step,    \
                                    ptrdiff_t rows, int adds, float scale) {                      \
        if (!adds && rows == 2)                                                                   \
            sum_int_run_##name(sums, src, n, step, 2, 0, scale);                                  \
        else if (!adds && rows == 3)                                                              \
            sum_int_run_##name(sums, src, n, step, 3, 0, scale);                                  \
        else if (!adds && rows <= MOST_ROWS_AT_ONCE)                                              \
            sum_int_run_##name(sums, src, n, step, rows, 0, scale);                               \
        else                                                                                      \
            for (; rows > 0; rows -= MOST_ROWS_AT_ONCE, adds = 1) {                               \
                if (rows < MOST_ROWS_AT_ONCE)                                                     \
                    sum_int_run_##name(sums, src, n, step, rows, adds, scale);                    \
                else                                                                              \
                    sum_int_run_##name(sums, src, n, step, MOST_ROWS_AT_ONCE, adds, scale);       \
                src += MOST_ROWS_AT_ONCE * step;                                                  \
            }                                                                                     \
    }
/* The same from sums before: `ins` rows are added, and `outs` are subtracted. */
#define DEFINE_CARRY_INT_ROWS(name, T)                                                            \
    static void carry_int_rows_##name(uint32_t *sums, const uint32_t *before, const T *in,        \
                                      ptrdiff_t ins, const T *out, ptrdiff_t outs, ptrdiff_t n,   \
                                      ptrdiff_t step) {                                           \
        ptrdiff_t i = 0;                                                                          \
        for (; i + INTS <= n; i += INTS) {                                                        \
            vec_u32 sum = (vec_u32)vec_load(before + i);                                          \
            for (ptrdiff_t r = 0; r < ins; r++) sum += ints_##name(in + r * step + i);            \
            for (ptrdiff_t r = 0; r < outs; r++) sum -= ints_##name(out + r * step + i);          \
            vec_store(sums + i, (vec_t)sum);                                                      \
        }                                                                                         \
        if (i < n) {                                                                              \
            vec_u32 sum = (vec_u32)vec_load(before + i);                                          \
            for (ptrdiff_t r = 0; r < ins; r++) sum += ints_part_##name(in + r * step + i, n - i); \
            for (ptrdiff_t r = 0; r < outs; r++)                                                  \
                sum -= ints_part_##name(out + r * step + i, n - i);                               \
            vec_store(sums + i, (vec_t)sum);                                                      \
        }                                                                                         \
    }
DEFINE_INT_ROWS(i8, int8_t) DEFINE_INT_ROWS(u8, uint8_t)
DEFINE_INT_ROWS(i16, int16_t) DEFINE_INT_ROWS(u16, uint16_t)
DEFINE_INT_ROWS(i32, int32_t)
DEFINE_INT_ROWS(f16, float16_t_) DEFINE_INT_ROWS(bf16, bfloat16_t_)
DEFINE_CARRY_INT_ROWS(i8, int8_t) DEFINE_CARRY_INT_ROWS(u8, uint8_t)
DEFINE_CARRY_INT_ROWS(i16, int16_t) DEFINE_CARRY_INT_ROWS(u16, uint16_t)
DEFINE_CARRY_INT_ROWS(i32, int32_t)
#define BY_SMALL(f, p)                                                                            \
    _Generic(*(p), int8_t: f##_i8, uint8_t: f##_u8, int16_t: f##_i16, uint16_t: f##_u16,          \
             int32_t: f##_i32)
#define sum_int_rows(sums, src, n, step, rows, adds, scale)                                       \
    _Generic(*(src), int8_t: sum_int_rows_i8, uint8_t: sum_int_rows_u8, int16_t: sum_int_rows_i16, \
             uint16_t: sum_int_rows_u16, int32_t: sum_int_rows_i32, float16_t_: sum_int_rows_f16, \
             bfloat16_t_: sum_int_rows_bf16)(sums, src, n, step, rows, adds, scale)
#define carry_int_rows(sums, before, in, ins, out, outs, n, step)                                 \
    BY_SMALL(carry_int_rows, in)(sums, before, in, ins, out, outs, n, step)

/* ---- windows: taps of a row of columns; a vector after the last is read and overwritten ---- */

INLINE void add_int_taps(uint32_t *out, const uint32_t *columns, ptrdiff_t n, ptrdiff_t taps,
                         ptrdiff_t step) {
    for (ptrdiff_t i = 0; i < n; i += INTS) {
        vec_u32 sum = (vec_u32)vec_load(columns + i);
        for (ptrdiff_t t = 1; t < taps; t++) sum += (vec_u32)vec_load(columns + i + t * step);
        vec_store(out + i, (vec_t)sum);
    }
}
/* Set the sums of n windows that begin at neighbours. */
static void sum_int_taps(uint32_t *out, const uint32_t *columns, ptrdiff_t n, ptrdiff_t taps,
                         ptrdiff_t step) {
    if (taps == 2)
        add_int_taps(out, columns, n, 2, step);
    else if (taps == 3)
        add_int_taps(out, columns, n, 3, step);
    else if (taps == 5)
        add_int_taps(out, columns, n, 5, step);
    else
        add_int_taps(out, columns, n, taps, step);
}

INLINE void add_int_taps_at_two(uint32_t *out, const uint32_t *columns, ptrdiff_t n,
                                ptrdiff_t taps, ptrdiff_t step) {
    for (ptrdiff_t i = 0; i < n; i += INTS) {
        const uint32_t *at = columns + 2 * i;
        vec_t low = vec_load(at), high = vec_load(at + INTS);
        vec_u32 sum = (vec_u32)vec_concat_even_4(low, high);
        for (ptrdiff_t t = 1; t < taps; t++) {
            if (t == 1 && step == 1) {
                sum += (vec_u32)vec_concat_odd_4(low, high);
                continue;
            }
            low = vec_load(at + t * step), high = vec_load(at + t * step + INTS);
            sum += (vec_u32)vec_concat_even_4(low, high);
        }
        vec_store(out + i, (vec_t)sum);
    }
}
/* The same, of single elements that begin at every second one. */
static void sum_int_taps_at_two(uint32_t *out, const uint32_t *columns, ptrdiff_t n,
                                ptrdiff_t taps, ptrdiff_t step) {
    if (taps == 2 && step == 1)
        add_int_taps_at_two(out, columns, n, 2, 1);
    else if (taps == 3 && step == 1)
        add_int_taps_at_two(out, columns, n, 3, 1);
    else
        add_int_taps_at_two(out, columns, n, taps, step);
}

/* Copy n groups of sums that begin `stride` sums apart. */
static void pick_int_sums(uint32_t *out, const uint32_t *sums, ptrdiff_t n, ptrdiff_t channels,
                          ptrdiff_t stride) {
    for (ptrdiff_t c = 0; c < n; c++, out += channels, sums += stride) {
        if (channels == 1)
            *out = *sums;
        else
            for (ptrdiff_t i = 0; i < channels; i += 4) memcpy(out + i, sums + i, 16);
    }
}

#if VEC_BYTES == 64
#define INTS_FROM(k) FROM_8(k), FROM_8(k + 8)
#elif VEC_BYTES == 32
#define INTS_FROM(k) FROM_8(k)
#else
#define INTS_FROM(k) k, k + 1, k + 2, k + 3
#endif
#define ADD_INTS_BEFORE(lanes)                                                                    \
    if (lanes < INTS)                                                                             \
        v += (vec_u32)SHUFFLE(vec_u32, (vec_u32){0}, v, INTS_FROM(INTS - lanes % INTS))

/* Set to[i + lag] to the sum of the first i + 1 of n columns, of every lag-th if lag is not 1, and
 * to[0], ..., to[lag - 1] to 0. A vector after the last is read and overwritten. */
static void sum_ints_before(uint32_t *to, const uint32_t *from, ptrdiff_t n, ptrdiff_t lag) {
    memset(to, 0, (size_t)lag * 4);
    if (lag == 1) {
        vec_u32 before = {0};
        for (ptrdiff_t i = 0; i < n; i += INTS) {
            vec_u32 v = (vec_u32)vec_load(from + i);
            ADD_INTS_BEFORE(1);
            ADD_INTS_BEFORE(2);
            ADD_INTS_BEFORE(4);
            ADD_INTS_BEFORE(8);
            vec_store(to + 1 + i, (vec_t)(v + before));
            before += v[INTS - 1];
        }
    } else if (lag >= INTS)
        for (ptrdiff_t i = 0; i < n; i += INTS) {
            vec_u32 sum = (vec_u32)vec_load(to + i) + (vec_u32)vec_load(from + i);
            vec_store(to + lag + i, (vec_t)sum);
        }
    else
        for (ptrdiff_t i = 0; i < n; i++) to[lag + i] = to[i] + from[i];
}

/* Set n differences: of the elements from `last` on, and those from `first` on. */
static void subtract_ints(uint32_t *out, const uint32_t *last, const uint32_t *first, ptrdiff_t n) {
    if (n == 1)
        *out = *last - *first;
    else
        for (ptrdiff_t i = 0; i < n; i += INTS)
            vec_store(out + i, (vec_t)((vec_u32)vec_load(last + i) - (vec_u32)vec_load(first + i)));
}

/* ---- floats of 16 bits as multiples of a unit ---- */

/* The greatest magnitudes: note those of n elements in a vector of 0 at first, and return the
 * greatest. Those of floats are their bits, doubled. */
#if VEC_BYTES == 64
#define GREATER_u16(a, b) (vec_u16)_mm512_max_epu16((__m512i)(a), (__m512i)(b))
#define GREATER_u32(a, b) (vec_u32)_mm512_max_epu32((__m512i)(a), (__m512i)(b))
#elif VEC_BYTES == 32
#define GREATER_u16(a, b) (vec_u16)_mm256_max_epu16((__m256i)(a), (__m256i)(b))
#define GREATER_u32(a, b) (vec_u32)_mm256_max_epu32((__m256i)(a), (__m256i)(b))
#else
#define GREATER_u16(a, b) (((a) & (vec_u16)((a) > (b))) | ((b) & (vec_u16)((a) <= (b))))
#define GREATER_u32(a, b) (((a) & (vec_u32)((a) > (b))) | ((b) & (vec_u32)((a) <= (b))))
#endif
#define DEFINE_NOTE_GREATEST(name, T, type, MAGNITUDE)                                            \
    static void note_greatest_##name(void *greatest, const T *src, ptrdiff_t n) {                 \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        vec_##type most = (vec_##type)vec_load(greatest);                                         \
        for (ptrdiff_t i = 0; i < n; i += lanes) {                                                \
            vec_##type x;                                                                         \
            if (n >= lanes) {                                                                     \
                if (i > n - lanes) i = n - lanes;                                                 \
                x = (vec_##type)vec_load(src + i);                                                \
            } else                                                                                \
                x = (vec_##type)vec_load_part(src, (size_t)n * sizeof(T));                        \
            most = GREATER_##type(most, MAGNITUDE);                                               \
        }                                                                                         \
        vec_store(greatest, (vec_t)most);                                                         \
    }                                                                                             \
    static uint32_t noted_##name(const void *greatest) {                                          \
        vec_##type most = (vec_##type)vec_load(greatest);                                         \
        uint32_t all = 0;                                                                         \
        for (size_t lane = 0; lane < VEC_BYTES / sizeof(T); lane++)                               \
            if (most[lane] > all) all = most[lane];                                               \
        return all;                                                                               \
    }
DEFINE_NOTE_GREATEST(f16, float16_t_, u16, x << 1)
DEFINE_NOTE_GREATEST(bf16, bfloat16_t_, u16, x << 1)
DEFINE_NOTE_GREATEST(i32, int32_t, u32, (vec_u32)((vec_i32)x ^ (vec_i32)x >> 31))
DEFINE_NOTE_GREATEST(u32, uint32_t, u32, x)
#define BY_NOTED(f, p)                                                                            \
    _Generic(*(p), float16_t_: f##_f16, bfloat16_t_: f##_bf16, int32_t: f##_i32, uint32_t: f##_u32)
#define note_greatest(greatest, p, n) BY_NOTED(note_greatest, p)(greatest, p, n)
#define noted(greatest, p) BY_NOTED(noted, p)(greatest)

/* The number whose bits, doubled, are a magnitude. */
#define HALF_OF(magnitude, p)                                                                     \
    _Generic(*(p), float16_t_: as_double_f16((float16_t_){(uint16_t)((magnitude) >> 1)}),         \
             bfloat16_t_: as_double_bf16((bfloat16_t_){(uint16_t)((magnitude) >> 1)}))

/* Set n integers, `scale` times as much. That raises the flag for inexact results if they are. */
#define DEFINE_TO_INTS(name, T)                                                                   \
    static void to_ints_##name(int32_t *to, const T *from, ptrdiff_t n, float scale) {            \
        ptrdiff_t i = 0;                                                                          \
        for (; i + INTS <= n; i += INTS) vec_store(to + i, (vec_t)scaled_##name(from + i, scale)); \
        if (i < n && n >= INTS)                                                                   \
            vec_store(to + n - INTS, (vec_t)scaled_##name(from + n - INTS, scale));               \
        else                                                                                      \
            for (; i < n; i++) to[i] = int_of_##name(from[i], scale);                             \
    }
DEFINE_TO_INTS(f16, float16_t_) DEFINE_TO_INTS(bf16, bfloat16_t_)
#define to_ints(to, from, n, scale)                                                               \
    _Generic(*(from), float16_t_: to_ints_f16, bfloat16_t_: to_ints_bf16)(to, from, n, scale)

/* ---- quotients ---- */

/* n sums as doubles, or as floats that hold them. */
static void ints_to_doubles(double *to, const uint32_t *from, ptrdiff_t n, double unit) {
    for (ptrdiff_t i = 0; i < n; i += WIDE)
        vec_store(to + i, (vec_t)((vec_f64)wide_i32((const int32_t *)from + i) * unit));
}
static void ints_to_floats(float *to, const uint32_t *from, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += INTS)
        vec_store(to + i, (vec_t)__builtin_convertvector((vec_i32)vec_load(from + i), vec_f32));
}

/* Cut off to 24 bits, the last of which is set unless that is exact. */
INLINE vec_f32 odd_floats(vec_i32 v) {
#if VEC_BYTES == 64
    __m512 f = _mm512_cvt_roundepi32_ps((__m512i)v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask16 rounded = _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(f), (__m512i)v);
    __m512i bits = _mm512_castps_si512(f);
    return (vec_f32)_mm512_mask_or_epi32(bits, rounded, bits, _mm512_set1_epi32(1));
#else
    vec_f32 f = __builtin_convertvector(v, vec_f32);
#if VEC_BYTES == 32
    vec_i32 back = (vec_i32)_mm256_cvttps_epi32((__m256)f); /* (2**31 becomes -2**31) */
#else
    vec_i32 back = __builtin_convertvector(f, vec_i32);
#endif
    vec_i32 rest = (vec_i32)((vec_u32)v - (vec_u32)back), rounded = rest != 0;
    vec_i32 away = (v ^ rest) >> 31 & rounded; /* -1 if the float is greater */
    return (vec_f32)(((vec_i32)f + away) | (rounded & 1));
#endif
}

/* Quotients of sums by divisors. A sum of halves was cut to S, of 24 bits. The middle m of two
 * results has 12 bits, and the odd part of a divisor d at most 11, so S is above or below m * d as
 * the sum is. If it is not m * d, S / d is farther from m than half of the last of 24 bits. So it
 * ends on the right side of m if it is rounded to 24 bits, as the three operations do: they are off
 * by 2**-22 of that half. */
#define INT_LOOP(T, sum_t, type, ...)                                                             \
    const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(sum_t);                                 \
    const int flat = d->one && d->pitch == d->n * (ptrdiff_t)sizeof(T) &&                         \
        d->sums_pitch == d->n * 4; /* rows are one */                                             \
    const ptrdiff_t n = flat ? d->rows * d->n : d->n, rows = flat ? 1 : d->rows;                  \
    vec_##type high = *(const sum_t *)d->high - (vec_##type){0};                                  \
    vec_##type low = *(const sum_t *)d->low - (vec_##type){0};                                    \
    for (ptrdiff_t r = 0; r < rows; r++) {                                                        \
        const int32_t *sums = (const int32_t *)(d->sums + r * d->sums_pitch);                     \
        T *y = (T *)((char *)to + r * d->pitch);                                                  \
        for (ptrdiff_t i = 0; i < n; i += lanes) {                                                \
            if (i > n - lanes && n >= lanes) i = n - lanes; /* (some are divided again) */        \
            if (!d->one) high = (vec_##type)vec_load((const sum_t *)d->high + i);                 \
            if (!d->one) low = (vec_##type)vec_load((const sum_t *)d->low + i);                   \
            __VA_ARGS__                                                                           \
            if (n >= lanes)                                                                       \
                memcpy(y + i, &results, (size_t)lanes * sizeof *y);                               \
            else                                                                                  \
                memcpy(y, &results, (size_t)n * sizeof *y);                                       \
        }                                                                                         \
    }

typedef VECTOR(uint16_t, VEC_BYTES / 2) half_results;
INLINE half_results f16_of_floats(vec_f32 q) {
    half_results results;
#if VEC_BYTES == 64
    results = (half_results)_mm512_cvtps_ph((__m512)q, _MM_FROUND_TO_NEAREST_INT);
#elif VEC_BYTES == 32
    results = (half_results)_mm256_cvtps_ph((__m256)q, _MM_FROUND_TO_NEAREST_INT);
#else
    for (int i = 0; i < INTS; i++) results[i] = f16_bits(q[i]);
#endif
    return results;
}
INLINE half_results bf16_of_floats(vec_f32 q) {
    vec_u32 bits = (vec_u32)q, rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    __typeof__(LOW_16_f32(rounded)) low = LOW_16_f32(rounded);
    half_results results;
    memcpy(&results, &low, sizeof results);
    return results;
}
#define DEFINE_HALVES_OF_INTS(name, RESULTS)                                                      \
    static void quick_divide_##name##_of_ints(void *to, const quick_t *d) {                       \
        const float unit = (float)d->unit;                                                        \
        INT_LOOP(uint16_t, float, f32,                                                            \
            vec_f32 sum = odd_floats((vec_i32)vec_load(sums + i)) * unit, q = sum * high;         \
            q = MULTIPLY_ADD_f32(MULTIPLY_ADD_f32(q, low, sum), high, q);                         \
            RESULTS)                                                                              \
    }
DEFINE_HALVES_OF_INTS(f16, half_results results = f16_of_floats(q);)
DEFINE_HALVES_OF_INTS(bf16, half_results results = bf16_of_floats(q);)

#define FLOATS_OF_INTS(i) __builtin_convertvector((vec_i32)vec_load(sums + i), vec_f32)
#define DOUBLES_OF_INTS(i) (vec_f64)wide_i32(sums + i)
#define DEFINE_INTEGERS_OF_INTS(name, T, sum_t, type, LOAD, LOW)                                  \
    INLINE void quick_round_##name(void *to, const quick_t *d, int rounding) {                    \
        INT_LOOP(T, sum_t, type,                                                                  \
            vec_##type sum = LOAD(i), q = QUICK_QUOTIENTS(type, sum, high, low);                  \
            __typeof__(LOW##_##type(q)) results = LOW##_##type(round_quick_##type(q, rounding));) \
    }                                                                                             \
    static void quick_divide_##name(void *to, const quick_t *d) {                                 \
        if (d->rounding == HALF_EVEN)                                                             \
            quick_round_##name(to, d, HALF_EVEN);                                                 \
        else if (d->rounding == HALF_AWAY)                                                        \
            quick_round_##name(to, d, HALF_AWAY);                                                 \
        else if (d->rounding == FLOOR)                                                            \
            quick_round_##name(to, d, FLOOR);                                                     \
        else                                                                                      \
            quick_round_##name(to, d, TRUNC);                                                     \
    }
DEFINE_INTEGERS_OF_INTS(8_of_ints, uint8_t, float, f32, FLOATS_OF_INTS, LOW_8)
DEFINE_INTEGERS_OF_INTS(16_of_ints, uint16_t, float, f32, FLOATS_OF_INTS, LOW_16)
DEFINE_INTEGERS_OF_INTS(8_of_long_ints, uint8_t, double, f64, DOUBLES_OF_INTS, LOW_8)
DEFINE_INTEGERS_OF_INTS(16_of_long_ints, uint16_t, double, f64, DOUBLES_OF_INTS, LOW_16)
DEFINE_INTEGERS_OF_INTS(32_of_ints, uint32_t, double, f64, DOUBLES_OF_INTS, LOW_32)

#endif
