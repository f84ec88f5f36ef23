/* Sums of 8-bit elements in 16 bits, which hold those of up to MOST_BYTES. */
#ifndef FASTPOOL_BYTES_H
#define FASTPOOL_BYTES_H

#include "wide.h"

enum { MOST_BYTES = 255, HALVES = VEC_BYTES / 2, FLOATS_OF_SUMS = VEC_BYTES / 4 };

/* ---- elements as 16-bit integers, sums as floats ---- */

#if VEC_BYTES == 64
INLINE vec_u16 widened(const uint8_t *p, int is_signed) {
    __m256i v = _mm256_loadu_si256((const __m256i *)p);
    return (vec_u16)(is_signed ? _mm512_cvtepi8_epi16(v) : _mm512_cvtepu8_epi16(v));
}
INLINE vec_t sums_as_floats(const uint16_t *p, int is_signed) {
    __m256i v = _mm256_loadu_si256((const __m256i *)p);
    return (vec_t)_mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi16_epi32(v)
                                               : _mm512_cvtepu16_epi32(v));
}
#elif VEC_BYTES == 32
INLINE vec_u16 widened(const uint8_t *p, int is_signed) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    return (vec_u16)(is_signed ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v));
}
INLINE vec_t sums_as_floats(const uint16_t *p, int is_signed) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    return (vec_t)_mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi16_epi32(v)
                                               : _mm256_cvtepu16_epi32(v));
}
#else
typedef VECTOR(uint8_t, VEC_BYTES / 2) half_u8;
typedef VECTOR(int8_t, VEC_BYTES / 2) half_i8;
typedef VECTOR(uint16_t, VEC_BYTES / 2) half_u16;
typedef VECTOR(int16_t, VEC_BYTES / 2) half_i16;
INLINE vec_u16 widened(const uint8_t *p, int is_signed) {
    half_u8 v;
    memcpy(&v, p, sizeof v);
    return is_signed ? (vec_u16)__builtin_convertvector((half_i8)v, vec_i16)
                     : __builtin_convertvector(v, vec_u16);
}
INLINE vec_t sums_as_floats(const uint16_t *p, int is_signed) {
    half_u16 v;
    memcpy(&v, p, sizeof v);
    return is_signed ? (vec_t)__builtin_convertvector((half_i16)v, vec_f32)
                     : (vec_t)__builtin_convertvector(v, vec_f32);
}
#endif
/* The first n elements, n < HALVES; the others are 0. */
INLINE vec_u16 widened_part(const uint8_t *p, ptrdiff_t n, int is_signed) {
#if VEC_BYTES == 64
    __m256i v = _mm256_maskz_loadu_epi8((__mmask32)_bzhi_u32(~0u, (unsigned)n), p);
    return (vec_u16)(is_signed ? _mm512_cvtepi8_epi16(v) : _mm512_cvtepu8_epi16(v));
#else
    vec_u16 v = {0};
    for (ptrdiff_t i = 0; i < n; i++) v[i] = is_signed ? (uint16_t)(int8_t)p[i] : p[i];
    return v;
#endif
}
INLINE uint16_t widened_one(uint8_t x, int is_signed) {
    return is_signed ? (uint16_t)(int8_t)x : x;
}
INLINE float sum_as_float(uint16_t x, int is_signed) {
    return is_signed ? (float)(int16_t)x : (float)x;
}

/* ---- columns: elements of several rows ---- */

typedef struct {
    const uint8_t *src;       /* the first row, in a slab at 0 */
    const ptrdiff_t *offsets; /* of slabs */
    ptrdiff_t slabs, rows, step;
} byte_rows_t;

/* Set the sums of n columns. Callers pass constant numbers of slabs and rows if they are common. */
INLINE void add_byte_run(uint16_t *sums, const byte_rows_t *d, ptrdiff_t n, ptrdiff_t slabs,
                         ptrdiff_t rows, int is_signed) {
    if (n < HALVES && VEC_BYTES == 64) {
        vec_u16 sum = {0};
        for (ptrdiff_t s = 0; s < slabs; s++)
            for (ptrdiff_t r = 0; r < rows; r++)
                sum += widened_part(d->src + d->offsets[s] + r * d->step, n, is_signed);
        vec_store_part(sums, (vec_t)sum, (size_t)n * 2);
        return;
    }
    if (n < HALVES) {
        for (ptrdiff_t i = 0; i < n; i++) {
            sums[i] = 0;
            for (ptrdiff_t s = 0; s < slabs; s++)
                for (ptrdiff_t r = 0; r < rows; r++)
                    sums[i] += widened_one(d->src[d->offsets[s] + r * d->step + i], is_signed);
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; i += HALVES) {
        vec_u16 sum = {0};
        if (i > n - HALVES) i = n - HALVES; /* (some sums are made again) */
        for (ptrdiff_t s = 0; s < slabs; s++)
            for (ptrdiff_t r = 0; r < rows; r++)
                sum += widened(d->src + d->offsets[s] + r * d->step + i, is_signed);
        vec_store(sums + i, (vec_t)sum);
    }
}

/* Add rows to sums, or subtract them. */
INLINE void carry_byte_run(uint16_t *sums, const byte_rows_t *d, ptrdiff_t n, int adds,
                           int is_signed) {
    for (ptrdiff_t s = 0; s < d->slabs; s++)
        for (ptrdiff_t r = 0; r < d->rows; r++) {
            const uint8_t *src = d->src + d->offsets[s] + r * d->step;
            ptrdiff_t i = 0;
            for (; i + HALVES <= n; i += HALVES) {
                vec_u16 sum = (vec_u16)vec_load(sums + i), v = widened(src + i, is_signed);
                vec_store(sums + i, (vec_t)(adds ? sum + v : sum - v));
            }
            if (i < n && VEC_BYTES == 64) {
                vec_u16 sum = (vec_u16)vec_load_part(sums + i, (size_t)(n - i) * 2);
                vec_u16 v = widened_part(src + i, n - i, is_signed);
                vec_store_part(sums + i, (vec_t)(adds ? sum + v : sum - v), (size_t)(n - i) * 2);
                continue;
            }
            for (; i < n; i++) {
                uint16_t x = widened_one(src[i], is_signed);
                sums[i] = (uint16_t)(adds ? sums[i] + x : sums[i] - x);
            }
        }
}

/* ---- prefixes of a row of columns ---- */

#define FROM_8(k) k, k + 1, k + 2, k + 3, k + 4, k + 5, k + 6, k + 7
#if VEC_BYTES == 64
#define HALVES_FROM(k) FROM_8(k), FROM_8(k + 8), FROM_8(k + 16), FROM_8(k + 24)
#elif VEC_BYTES == 32
#define HALVES_FROM(k) FROM_8(k), FROM_8(k + 8)
#else
#define HALVES_FROM(k) FROM_8(k)
#endif
#define ADD_FROM_BEFORE(lanes) \
    if (lanes < HALVES) \
        v += (vec_u16)SHUFFLE(vec_u16, (vec_u16){0}, v, HALVES_FROM(HALVES - lanes % HALVES))

/* Set to[i + lag] to the sum of the first i + 1 of n columns, of every lag-th if lag is not 1, and
 * to[0], ..., to[lag - 1] to 0; modulo 2**16. A vector after the last is read and overwritten. */
static void sum_columns_before(uint16_t *to, const uint16_t *from, ptrdiff_t n, ptrdiff_t lag) {
    memset(to, 0, (size_t)lag * 2);
    if (lag == 1) {
        vec_u16 before = {0};
        for (ptrdiff_t i = 0; i < n; i += HALVES) {
            vec_u16 v = (vec_u16)vec_load(from + i);
            ADD_FROM_BEFORE(1);
            ADD_FROM_BEFORE(2);
            ADD_FROM_BEFORE(4);
            ADD_FROM_BEFORE(8);
            ADD_FROM_BEFORE(16);
            vec_store(to + 1 + i, (vec_t)(v + before));
            before += v[HALVES - 1];
        }
    } else if (lag >= HALVES)
        for (ptrdiff_t i = 0; i < n; i += HALVES) {
            vec_u16 sum = (vec_u16)vec_load(to + i) + (vec_u16)vec_load(from + i);
            vec_store(to + lag + i, (vec_t)sum);
        }
    else
        for (ptrdiff_t i = 0; i < n; i++) to[lag + i] = (uint16_t)(to[i] + from[i]);
}

/* ---- windows: taps of a row of columns; a vector after the last is read and overwritten ---- */

/* Without taps: columns are prefixes, and the sum is a difference. */
INLINE vec_u16 taps_at(const uint16_t *columns, ptrdiff_t taps, ptrdiff_t step) {
    vec_u16 sum = (vec_u16)vec_load(columns);
    if (taps == 0) return (vec_u16)vec_load(columns + step) - sum;
    for (ptrdiff_t t = 1; t < taps; t++) sum += (vec_u16)vec_load(columns + t * step);
    return sum;
}

/* Set the sums of n windows that begin at neighbours. */
INLINE void add_byte_taps(float *out, const uint16_t *columns, ptrdiff_t n, ptrdiff_t taps,
                          ptrdiff_t step, int is_signed) {
    for (ptrdiff_t i = 0; i < n; i += HALVES) {
        uint16_t sums[HALVES];
        vec_store(sums, (vec_t)taps_at(columns + i, taps, step));
        vec_store(out + i, sums_as_floats(sums, is_signed));
        vec_store(out + i + FLOATS_OF_SUMS, sums_as_floats(sums + FLOATS_OF_SUMS, is_signed));
    }
}

/* Set the sums of n windows of single elements that begin at every second one. */
INLINE void add_byte_taps_at_two(float *out, const uint16_t *columns, ptrdiff_t n, ptrdiff_t taps,
                                 ptrdiff_t step, int is_signed) {
    for (ptrdiff_t i = 0; i < n; i += FLOATS_OF_SUMS) {
        vec_i32 sum = (vec_i32)taps_at(columns + 2 * i, taps, step);
        if (HIGH_HALF_FIRST)
            sum = is_signed ? sum >> 16 : (vec_i32)((vec_u32)sum >> 16);
        else
            sum = is_signed ? (vec_i32)((vec_u32)sum << 16) >> 16 : sum & 0xffff;
        vec_store(out + i, (vec_t)__builtin_convertvector(sum, vec_f32));
    }
}

#define BY_SIGN(call, is_signed)                                                                  \
    if (is_signed)                                                                                \
        call(1);                                                                                  \
    else                                                                                          \
        call(0);
#define ADD_RUN(s) add_byte_run(sums, d, n, d->slabs, d->rows, s)
#define ADD_TWO(s) add_byte_run(sums, d, n, 1, 2, s)
#define ADD_THREE(s) add_byte_run(sums, d, n, 1, 3, s)
static void add_byte_rows(uint16_t *sums, const byte_rows_t *d, ptrdiff_t n, int is_signed) {
    if (d->slabs == 1 && d->rows == 2)
        BY_SIGN(ADD_TWO, is_signed)
    else if (d->slabs == 1 && d->rows == 3)
        BY_SIGN(ADD_THREE, is_signed)
    else
        BY_SIGN(ADD_RUN, is_signed)
}

#define CARRY_IN(s) carry_byte_run(sums, d, n, 1, s)
#define CARRY_OUT(s) carry_byte_run(sums, d, n, 0, s)
static void carry_byte_rows(uint16_t *sums, const byte_rows_t *d, ptrdiff_t n, int adds,
                            int is_signed) {
    if (adds)
        BY_SIGN(CARRY_IN, is_signed)
    else
        BY_SIGN(CARRY_OUT, is_signed)
}

#define TAPS_OF(taps)                                                                             \
    if (is_signed)                                                                                \
        add_byte_taps(out, columns, n, taps, step, 1);                                            \
    else                                                                                          \
        add_byte_taps(out, columns, n, taps, step, 0);
static void sum_byte_taps(float *out, const uint16_t *columns, ptrdiff_t n, ptrdiff_t taps,
                          ptrdiff_t step, int is_signed) {
    if (taps == 0) {
        TAPS_OF(0)
    } else if (taps == 2) {
        TAPS_OF(2)
    } else if (taps == 3) {
        TAPS_OF(3)
    } else {
        TAPS_OF(taps)
    }
}

static void sum_byte_taps_at_two(float *out, const uint16_t *columns, ptrdiff_t n, ptrdiff_t taps,
                                 ptrdiff_t step, int is_signed) {
    if (taps == 0)
        add_byte_taps_at_two(out, columns, n, 0, step, is_signed);
    else if (taps == 2)
        add_byte_taps_at_two(out, columns, n, 2, step, is_signed);
    else
        add_byte_taps_at_two(out, columns, n, taps, step, is_signed);
}

/* Set the sums of n windows that begin at neighbours, in 16 bits. */
static void sum_byte_taps_in_16(uint16_t *to, const uint16_t *columns, ptrdiff_t n, ptrdiff_t taps,
                                ptrdiff_t step) {
    for (ptrdiff_t i = 0; i < n; i += HALVES)
        vec_store(to + i, (vec_t)taps_at(columns + i, taps, step));
}

/* Set n groups of floats from groups of `channels` sums that begin `stride` sums apart. */
static void pick_sums(float *out, const uint16_t *sums, ptrdiff_t n, ptrdiff_t channels,
                      ptrdiff_t stride, int is_signed) {
    for (ptrdiff_t c = 0; c < n; c++)
        for (ptrdiff_t i = 0; i < channels; i++)
            *out++ = sum_as_float(sums[c * stride + i], is_signed);
}

/* Return the sum of n neighbours. Bytes of -128 to 127 count 128 more, and that is subtracted. */
#if VEC_BYTES == 64
#define SUMS_OF_EIGHT(v) (vec_u64)_mm512_sad_epu8((__m512i)(v), _mm512_setzero_si512())
#elif VEC_BYTES == 32
#define SUMS_OF_EIGHT(v) (vec_u64)_mm256_sad_epu8((__m256i)(v), _mm256_setzero_si256())
#elif defined(__SSE2__)
#define SUMS_OF_EIGHT(v) (vec_u64)_mm_sad_epu8((__m128i)(v), _mm_setzero_si128())
#else
INLINE vec_u64 sums_of_eight(vec_u8 v) {
    vec_u64 sums = {0};
    for (int i = 0; i < VEC_BYTES; i++) sums[i / 8] += v[i];
    return sums;
}
#define SUMS_OF_EIGHT(v) sums_of_eight((vec_u8)(v))
#endif
static double sum_of_bytes(const void *src, ptrdiff_t n, int is_signed) {
    const uint8_t *p = (const uint8_t *)src;
    const uint8_t more = is_signed ? 0x80 : 0;
    vec_u64 one = {0}, two = {0};
    ptrdiff_t i = 0;
    uint64_t total = 0;
    for (; i + 2 * VEC_BYTES <= n; i += 2 * VEC_BYTES) {
        one += SUMS_OF_EIGHT((vec_u8)vec_load(p + i) ^ more);
        two += SUMS_OF_EIGHT((vec_u8)vec_load(p + i + VEC_BYTES) ^ more);
    }
    for (; i < n; i += VEC_BYTES) {
        vec_t v = n - i < VEC_BYTES ? vec_load_part(p + i, (size_t)(n - i)) : vec_load(p + i);
        one += SUMS_OF_EIGHT((vec_u8)v ^ more);
    }
    one += two;
    for (int lane = 0; lane < VEC_BYTES / 8; lane++) total += one[lane];
    return (double)((int64_t)total - (int64_t)more * i); /* (i counts the zeros after the last) */
}

/* n floats as doubles. */
static void widen_sums(double *to, const float *from, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += WIDE) vec_store(to + i, wide_f32(from + i));
}

#endif
