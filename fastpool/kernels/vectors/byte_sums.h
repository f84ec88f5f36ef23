/* Sums of small integers whose windows overlap, in lanes of twice their bits. Rows enter and leave
 * the sums down columns. These are added along rows, where means of few taps take one
 * multiplication more. */
#ifndef FASTPOOL_BYTE_SUMS_H
#define FASTPOOL_BYTE_SUMS_H

#include "folds.h"
#include "quick_quotients.h"

enum { MOST_BYTE_ROWS = 128 }; /* that 16 bits with a sign hold */
enum { MOST_BYTE_TAPS = 255 }; /* that twice their bits hold, with a sign if they have one */
enum { SHORTS = VEC_BYTES / 2 };

/* ---- n sums down columns, with room for a vector ---- */

typedef struct {
    void *to;
    const void *before;        /* sums of the row before; NULL if sums begin */
    const char *enter, *leave; /* rows of elements */
    ptrdiff_t entering, leaving, pitch, n;
    int flip; /* of elements with a sign: its bit */
} bytes_t;

typedef VECTOR(uint8_t, VEC_BYTES / 2) half_u8;
typedef VECTOR(uint16_t, VEC_BYTES / 2) half_u16;
#if VEC_BYTES == 64
#define WIDENED_u8(v) (vec_i16)_mm512_cvtepu8_epi16((__m256i)(v))
#define WIDENED_u16(v) (vec_i32)_mm512_cvtepu16_epi32((__m256i)(v))
#elif VEC_BYTES == 32
#define WIDENED_u8(v) (vec_i16)_mm256_cvtepu8_epi16((__m128i)(v))
#define WIDENED_u16(v) (vec_i32)_mm256_cvtepu16_epi32((__m128i)(v))
#else
#define WIDENED_u8(v) __builtin_convertvector(v, vec_i16)
#define WIDENED_u16(v) __builtin_convertvector(v, vec_i32)
#endif
#define DEFINE_ADD_ROWS(type, sum, T, S)                                                          \
    INLINE vec_##sum widened_##type(const void *p, ptrdiff_t n, int flip) {                       \
        half_##type v;                                                                            \
        if (n < VEC_BYTES / (ptrdiff_t)sizeof(S)) {                                               \
            const vec_t some = vec_load_part(p, (size_t)n * sizeof(T));                           \
            memcpy(&v, &some, sizeof v);                                                          \
        } else                                                                                    \
            memcpy(&v, p, sizeof v);                                                              \
        return WIDENED_##type(v ^ ((half_##type){0} + (T)flip));                                  \
    }                                                                                             \
    INLINE void add_some_##type(const bytes_t *a, ptrdiff_t i, ptrdiff_t n, ptrdiff_t entering,   \
                                ptrdiff_t leaving) {                                              \
        const char *enter = a->enter + i * sizeof(T), *leave = a->leave + i * sizeof(T);          \
        vec_##sum v = a->before ? (vec_##sum)vec_load((const S *)a->before + i) : (vec_##sum){0}; \
        v -= (S)((entering - leaving) * a->flip);                                                 \
        for (ptrdiff_t r = 0; r < leaving; r++) /* before others enter: S holds 128 rows */       \
            v -= widened_##type(leave + r * a->pitch, n, a->flip);                                \
        for (ptrdiff_t r = 0; r < entering; r++)                                                  \
            v += widened_##type(enter + r * a->pitch, n, a->flip);                                \
        vec_store((S *)a->to + i, (vec_t)v);                                                      \
    }                                                                                             \
    INLINE void add_rows_by_##type(const bytes_t a, ptrdiff_t entering, ptrdiff_t leaving) {      \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(S);                                 \
        ptrdiff_t i = 0;                                                                          \
        for (; i + lanes <= a.n; i += lanes) add_some_##type(&a, i, lanes, entering, leaving);    \
        if (i < a.n) add_some_##type(&a, i, a.n - i, entering, leaving);                          \
    }                                                                                             \
    static void add_rows_of_##type(const bytes_t *a) {                                            \
        if (a->entering == 1 && a->leaving == 1)                                                  \
            add_rows_by_##type(*a, 1, 1);                                                         \
        else if (a->entering == 2 && a->leaving == 0)                                             \
            add_rows_by_##type(*a, 2, 0);                                                         \
        else                                                                                      \
            add_rows_by_##type(*a, a->entering, a->leaving);                                      \
    }
DEFINE_ADD_ROWS(u8, i16, uint8_t, int16_t)
DEFINE_ADD_ROWS(u16, i32, uint16_t, int32_t)

static VECTORISED void floats_of_i32(float *to, const int32_t *from, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) to[i] = (float)from[i];
}
/* Add rows of integers of one or two bytes, and set `floats` to the sums if it is not NULL. */
static void add_bytes(const bytes_t *a, float *floats, int bytes) {
    if (bytes == 1) {
        add_rows_of_u8(a);
        if (floats) to_floats_i16(floats, a->to, a->n, -1);
    } else {
        add_rows_of_u16(a);
        if (floats) floats_of_i32(floats, (const int32_t *)a->to, a->n);
    }
}

/* ---- sums along rows ---- */

/* How sums become means: (sum + add) * times >> 16 or 32 >> shift. It is rounded to even: if it is
 * odd, and `divisor` times it is sum + add, the mean is 1 less. */
typedef struct {
    double by; /* times the count of a column, the divisor; -1: of no row */
    const char *times, *add, *divisor; /* of each output of a row, or of all */
    int shift, one, ties;              /* of all? rounded to even? */
    int fits;                          /* is no quotient wrong? */
    int flip;
} byte_divisors_t;

/* The taps of an output are two groups, each of neighbours that are `step` apart. */
typedef struct {
    const char *taps[2];
    ptrdiff_t count[2], step[2];
    ptrdiff_t rows, n, pitch, to_pitch; /* pitches in elements */
    void *to;
    int kept; /* bits of sums, if these are extended by their signs */
} along_t;

INLINE vec_i32 widened_sums_u8(const int16_t *p) {
    shorts_t v;
    memcpy(&v, p, sizeof v);
    return WORDS_OF(v);
}
INLINE vec_i32 widened_sums_u16(const int32_t *p) { return (vec_i32)vec_load(p); }

INLINE vec_u16 high_product_u8(vec_u16 a, vec_u16 b) {
#if VEC_BYTES == 64
    return (vec_u16)_mm512_mulhi_epu16((__m512i)a, (__m512i)b);
#elif VEC_BYTES == 32
    return (vec_u16)_mm256_mulhi_epu16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vec_u16)_mm_mulhi_epu16((__m128i)a, (__m128i)b);
#else
    const vec_u32 low = ((vec_u32)a & 0xffff) * ((vec_u32)b & 0xffff) >> 16;
    return (vec_u16)(low | (((vec_u32)a >> 16) * ((vec_u32)b >> 16) & 0xffff0000));
#endif
}
INLINE vec_u64 product_of_low(vec_u64 a, vec_u64 b) {
#if VEC_BYTES == 64
    return (vec_u64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif VEC_BYTES == 32
    return (vec_u64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vec_u64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}
INLINE vec_u32 high_product_u16(vec_u32 a, vec_u32 b) {
    const vec_u64 low = product_of_low((vec_u64)a, (vec_u64)b) >> 32;
    const vec_u64 high = product_of_low((vec_u64)a >> 32, (vec_u64)b >> 32);
    return (vec_u32)(low | (high & 0xffffffff00000000));
}

/* Set how sums of at most `divisor` elements of one or two `bytes` are divided: by `by` times the
 * count of each of some columns of n outputs, or all by `by` if there are no counts. `to` gets
 * three numbers of each output, in rows of `pitch` and a vector. Unrounded, quotients by times /
 * 2**(16 or 32 + shift) are too large by less than 1 / divisor if they fit. */
static void set_byte_divisors(byte_divisors_t *a, char *to, ptrdiff_t pitch, double by,
                              const double *counts, ptrdiff_t columns, ptrdiff_t n, int bytes,
                              int is_signed, int rounding) {
    const int64_t range = 1 << 8 * bytes;
    double least = by * (counts ? counts[0] : 1), most = least;
    int64_t unit, numbers[3];
    pitch = (2 * bytes * pitch + VEC_BYTES - 1) / VEC_BYTES * VEC_BYTES;
    a->times = to, a->add = to + pitch, a->divisor = to + 2 * pitch, a->by = by;
    a->one = !counts, a->flip = is_signed ? (int)(range / 2) : 0;
    a->ties = a->shift = a->fits = 0;
    if (a->one) columns = 1, n = SHORTS;
    for (ptrdiff_t c = 1; c < columns; c++) {
        least = by * counts[c] < least ? by * counts[c] : least;
        most = by * counts[c] > most ? by * counts[c] : most;
    }
    if (!(least >= 2 && most <= MOST_BYTE_TAPS)) return;
    if (is_signed && (rounding == HALF_AWAY || rounding == TRUNC)) return;
    while (2 << a->shift < least) a->shift++;
    unit = range * range << a->shift;
    for (ptrdiff_t c = 0, run; c < columns; c += run) {
        const int64_t divisor = (int64_t)(by * (counts ? counts[c] : 1));
        const int even = rounding == HALF_EVEN && divisor % 2 == 0;
        /* (Columns that are alike at once: 64x40 uint8 k3, padded, 6.4 -> 3.5 us.) */
        for (run = 1; c + run < columns && counts[c + run] == counts[c];) run++;
        numbers[0] = (unit - 1) / divisor + 1;
        numbers[1] = (rounding <= HALF_AWAY ? divisor / 2 : 0) + a->flip * divisor;
        numbers[2] = even ? divisor : 0;
        if (range * divisor * (numbers[0] * divisor - unit) >= unit) return;
        a->ties |= even;
        /* Whole vectors, which end in the spare one of a row (177x160 uint8 k3 19 -> 8 us). */
        for (int k = 0; k < 3; k++) {
            const vec_t number = bytes == 1 ? (vec_t)((vec_u16){0} + (uint16_t)numbers[k])
                                            : (vec_t)((vec_u32){0} + (uint32_t)numbers[k]);
            for (ptrdiff_t j = 0; j < 2 * bytes * run * n; j += VEC_BYTES)
                vec_store(to + k * pitch + j, number);
        }
        to += 2 * bytes * run * n;
    }
    a->fits = 1;
}

/* Of elements of type T, whose sums are of type S: sums of some of a row, all as sums with room for
 * four vectors, as floats, and as means. */
#define DEFINE_ALONG(type, sum, T, S)                                                             \
    INLINE void add_along_##type(const along_t *a, ptrdiff_t at, vec_##sum *sums,                 \
                                 const int count) {                                               \
        for (int j = 0; j < count; j++) sums[j] = (vec_##sum){0};                                 \
        for (int g = 0; g < 2; g++) {                                                             \
            const char *p = a->taps[g] + at * sizeof(S);                                          \
            for (ptrdiff_t t = a->count[g]; t > 0; t--, p += a->step[g] * sizeof(S))              \
                for (int j = 0; j < count; j++) sums[j] += (vec_##sum)vec_load(p + j * VEC_BYTES);\
        }                                                                                         \
    }                                                                                             \
    static void sums_along_##type(const along_t *a) {                                             \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(S);                                 \
        for (ptrdiff_t r = 0; r < a->rows; r++) {                                                 \
            S *to = (S *)a->to + r * a->to_pitch;                                                 \
            vec_##sum sums[4];                                                                    \
            for (ptrdiff_t i = 0; i < a->n; i += 4 * lanes) {                                     \
                add_along_##type(a, r * a->pitch + i, sums, 4);                                   \
                for (int j = 0; j < 4; j++) vec_store(to + i + j * lanes, (vec_t)sums[j]);        \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static void floats_along_##type(const along_t *a) {                                           \
        const ptrdiff_t lanes = VEC_BYTES / 4;                                                    \
        for (ptrdiff_t r = 0; r < a->rows; r++) {                                                 \
            float *to = (float *)a->to + r * a->to_pitch;                                         \
            for (ptrdiff_t i = 0; i < a->n; i += 2 * lanes) {                                     \
                vec_u32 both[2] = {{0}, {0}}; /* (lanes after the row may overflow) */            \
                if (a->n >= 2 * lanes && i > a->n - 2 * lanes) i = a->n - 2 * lanes;              \
                for (int g = 0; g < 2; g++) {                                                     \
                    const S *p = (const S *)a->taps[g] + r * a->pitch + i;                        \
                    for (ptrdiff_t t = a->count[g]; t > 0; t--, p += a->step[g])                  \
                        for (int j = 0; j < 2; j++)                                               \
                            both[j] += (vec_u32)(widened_sums_##type(p + j * lanes) & a->kept);   \
                }                                                                                 \
                for (int j = 0; j < 2; j++) {                                                     \
                    const vec_i32 sums = (vec_i32)both[j];                                        \
                    const vec_t floats = (vec_t)__builtin_convertvector(sums, vec_f32);           \
                    const ptrdiff_t left = a->n - i - j * lanes;                                  \
                    if (left >= lanes)                                                            \
                        vec_store(to + i + j * lanes, floats);                                    \
                    else if (left > 0)                                                            \
                        vec_store_part(to + i + j * lanes, floats, (size_t)left * 4);             \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    INLINE vec_##sum quotients_##type(const byte_divisors_t *a, ptrdiff_t i, vec_##sum sums,      \
                                      const int ties) {                                           \
        const ptrdiff_t at = a->one ? 0 : i * (ptrdiff_t)sizeof(S);                               \
        const vec_##sum x = sums + (vec_##sum)vec_load(a->add + at);                              \
        vec_##sum q = high_product_##type(x, (vec_##sum)vec_load(a->times + at)) >> a->shift;     \
        if (ties)                                                                                 \
            q -= (vec_##sum)(q * (vec_##sum)vec_load(a->divisor + at) == x) & q & 1;              \
        return q;                                                                                 \
    }                                                                                             \
    INLINE vec_t means_at_##type(const byte_divisors_t *by, ptrdiff_t i, const vec_##sum *sums,   \
                                 const int ties) {                                                \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(S);                                 \
        return (vec_t)((vec_##type){0} + (T)by->flip) ^                                           \
            LOW_HALVES(quotients_##type(by, i, sums[0], ties),                                    \
                       quotients_##type(by, i + lanes, sums[1], ties), (T *)0);                   \
    }                                                                                             \
    INLINE void means_of_##type(const along_t along, const byte_divisors_t divisors,              \
                                const int ties) {                                                 \
        const along_t *a = &along; /* (copies, which no store may change) */                      \
        const byte_divisors_t *by = &divisors;                                                    \
        const ptrdiff_t n = a->n, lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                       \
        for (ptrdiff_t r = 0; r < a->rows; r++) {                                                 \
            T *y = (T *)a->to + r * a->to_pitch;                                                  \
            const ptrdiff_t from = r * a->pitch;                                                  \
            vec_##sum sums[4];                                                                    \
            ptrdiff_t i = 0;                                                                      \
            for (; i + 2 * lanes <= n; i += 2 * lanes) {                                          \
                add_along_##type(a, from + i, sums, 4);                                           \
                vec_store(y + i, means_at_##type(by, i, sums, ties));                             \
                vec_store(y + i + lanes, means_at_##type(by, i + lanes, sums + 2, ties));         \
            }                                                                                     \
            for (; i < n; i += lanes) {                                                           \
                if (n >= lanes && i + lanes > n) i = n - lanes;                                   \
                add_along_##type(a, from + i, sums, 2);                                           \
                if (n < lanes)                                                                    \
                    vec_store_part(y, means_at_##type(by, 0, sums, ties), (size_t)n * sizeof(T)); \
                else                                                                              \
                    vec_store(y + i, means_at_##type(by, i, sums, ties));                         \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static void means_along_##type(const along_t *a, const byte_divisors_t *by) {                 \
        if (by->ties)                                                                             \
            means_of_##type(*a, *by, 1);                                                          \
        else                                                                                      \
            means_of_##type(*a, *by, 0);                                                          \
    }
DEFINE_ALONG(u8, u16, uint8_t, int16_t)
DEFINE_ALONG(u16, u32, uint16_t, int32_t)

#define sums_along(a, bytes) ((bytes) == 1 ? sums_along_u8(a) : sums_along_u16(a))
#define floats_along(a, bytes) ((bytes) == 1 ? floats_along_u8(a) : floats_along_u16(a))
#define means_along(a, by, bytes)                                                                 \
    ((bytes) == 1 ? means_along_u8(a, by) : means_along_u16(a, by))

#endif
