/* Sums of small integers whose windows overlap, in lanes of twice their bits. Rows enter and leave
 * the sums down columns. Those of bytes are added along rows, where means of few taps take one
 * multiplication more. */
#ifndef FASTPOOL_BYTE_SUMS_H
#define FASTPOOL_BYTE_SUMS_H

#include "folds.h"
#include "quick_quotients.h"

enum { MOST_BYTE_ROWS = 128 }; /* that 16 bits with a sign hold */
enum { MOST_BYTE_TAPS = 255 }; /* that 16 bits hold, with a sign if bytes have one */
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
        for (ptrdiff_t r = 0; r < entering; r++)                                                  \
            v += widened_##type(enter + r * a->pitch, n, a->flip);                                \
        for (ptrdiff_t r = 0; r < leaving; r++)                                                   \
            v -= widened_##type(leave + r * a->pitch, n, a->flip);                                \
        vec_store((S *)a->to + i, (vec_t)v);                                                      \
    }                                                                                             \
    INLINE void add_rows_by_##type(const bytes_t *a, ptrdiff_t entering, ptrdiff_t leaving) {     \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(S);                                 \
        ptrdiff_t i = 0;                                                                          \
        for (; i + lanes <= a->n; i += lanes) add_some_##type(a, i, lanes, entering, leaving);    \
        if (i < a->n) add_some_##type(a, i, a->n - i, entering, leaving);                         \
    }                                                                                             \
    static void add_rows_of_##type(const bytes_t *a) {                                            \
        if (a->entering == 1 && a->leaving == 1)                                                  \
            add_rows_by_##type(a, 1, 1);                                                          \
        else if (a->entering == 2 && a->leaving == 0)                                             \
            add_rows_by_##type(a, 2, 0);                                                          \
        else                                                                                      \
            add_rows_by_##type(a, a->entering, a->leaving);                                       \
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

/* How sums become means: (sum + add) * times >> 16 >> shift. It is rounded to even: if it is odd,
 * and `divisor` times it is sum + add, the mean is 1 less. */
typedef struct {
    double by; /* times the count of a column, the divisor; -1: of no row */
    const uint16_t *times, *add, *divisor; /* of each output of a row, or of all */
    int shift, one, ties;                  /* of all? rounded to even? */
    int fits;                              /* is no quotient wrong? */
    uint8_t flip;
} byte_divisors_t;

/* The taps of an output are two groups, each of neighbours that are `step` apart. */
typedef struct {
    const int16_t *taps[2];
    ptrdiff_t count[2], step[2];
    ptrdiff_t rows, n, pitch, to_pitch; /* pitches in elements */
    void *to;
    int kept; /* bits of sums, if these are extended by their signs */
} along_t;

INLINE void add_shorts(const along_t *a, ptrdiff_t at, vec_u16 *sums, const int count) {
    for (int j = 0; j < count; j++) sums[j] = (vec_u16){0};
    for (int g = 0; g < 2; g++) {
        const int16_t *p = a->taps[g] + at;
        for (ptrdiff_t t = a->count[g]; t > 0; t--, p += a->step[g])
            for (int j = 0; j < count; j++) sums[j] += (vec_u16)vec_load(p + j * SHORTS);
    }
}

/* As sums, with room for four vectors. */
static void shorts_along(const along_t *a) {
    for (ptrdiff_t r = 0; r < a->rows; r++) {
        int16_t *to = (int16_t *)a->to + r * a->to_pitch;
        vec_u16 sums[4];
        for (ptrdiff_t i = 0; i < a->n; i += 4 * SHORTS) {
            add_shorts(a, r * a->pitch + i, sums, 4);
            for (int j = 0; j < 4; j++) vec_store(to + i + j * SHORTS, (vec_t)sums[j]);
        }
    }
}

/* As floats. */
INLINE vec_i32 half_widened(const int16_t *p) {
    shorts_t v;
    memcpy(&v, p, sizeof v);
    return WORDS_OF(v);
}
static void floats_along(const along_t *a) {
    const ptrdiff_t lanes = SHORTS / 2;
    for (ptrdiff_t r = 0; r < a->rows; r++) {
        float *to = (float *)a->to + r * a->to_pitch;
        for (ptrdiff_t i = 0; i < a->n; i += 2 * lanes) {
            vec_i32 both[2] = {{0}, {0}};
            if (a->n >= 2 * lanes && i > a->n - 2 * lanes) i = a->n - 2 * lanes;
            for (int g = 0; g < 2; g++) {
                const int16_t *p = a->taps[g] + r * a->pitch + i;
                for (ptrdiff_t t = a->count[g]; t > 0; t--, p += a->step[g])
                    for (int j = 0; j < 2; j++) both[j] += half_widened(p + j * lanes) & a->kept;
            }
            for (int j = 0; j < 2; j++) {
                const vec_t floats = (vec_t)__builtin_convertvector(both[j], vec_f32);
                const ptrdiff_t left = a->n - i - j * lanes;
                if (left >= lanes)
                    vec_store(to + i + j * lanes, floats);
                else if (left > 0)
                    vec_store_part(to + i + j * lanes, floats, (size_t)left * 4);
            }
        }
    }
}

/* As means. */
INLINE vec_u16 high_product(vec_u16 a, vec_u16 b) {
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
/* Set how sums of at most `divisor` bytes are divided: by `by` times the count of each of some
 * columns of n outputs, or all by `by` if there are no counts. `to` gets three numbers of each
 * output, `pitch` apart. Unrounded, quotients by times / 2**(16 + shift) are too large by less than
 * 1 / divisor if they fit. */
static void set_byte_divisors(byte_divisors_t *a, uint16_t *to, ptrdiff_t pitch, double by,
                              const double *counts, ptrdiff_t columns, ptrdiff_t n, int is_signed,
                              int rounding) {
    double least = by * (counts ? counts[0] : 1), most = least;
    int divisor = 0, unit, times = 0, add = 0;
    a->times = to, a->add = to + pitch, a->divisor = to + 2 * pitch, a->by = by;
    a->one = !counts, a->flip = is_signed ? 128 : 0;
    a->ties = a->shift = a->fits = 0;
    if (a->one) columns = 1, n = SHORTS;
    for (ptrdiff_t c = 1; c < columns; c++) {
        least = by * counts[c] < least ? by * counts[c] : least;
        most = by * counts[c] > most ? by * counts[c] : most;
    }
    if (!(least >= 2 && most <= MOST_BYTE_TAPS)) return;
    if (is_signed && (rounding == HALF_AWAY || rounding == TRUNC)) return;
    while (2 << a->shift < least) a->shift++;
    unit = 1 << (16 + a->shift);
    for (ptrdiff_t c = 0; c < columns; c++) {
        const int next = (int)(by * (counts ? counts[c] : 1));
        const int even = rounding == HALF_EVEN && next % 2 == 0;
        if (next != divisor) {
            divisor = next, times = (unit - 1) / divisor + 1;
            add = (rounding <= HALF_AWAY ? divisor / 2 : 0) + 128 * divisor * is_signed;
            if (256 * divisor * (times * divisor - unit) >= unit) return;
            a->ties |= even;
        }
        for (ptrdiff_t j = 0; j < n; j++, to++) {
            to[0] = (uint16_t)times, to[pitch] = (uint16_t)add;
            to[2 * pitch] = (uint16_t)(even ? divisor : 0);
        }
    }
    a->fits = 1;
}
INLINE vec_u16 byte_quotients(const byte_divisors_t *a, ptrdiff_t i, vec_u16 sums, const int ties) {
    const ptrdiff_t each = a->one ? 0 : -1;
    const vec_u16 x = sums + (vec_u16)vec_load(a->add + (i & each));
    vec_u16 q = high_product(x, (vec_u16)vec_load(a->times + (i & each))) >> a->shift;
    if (ties) q -= (vec_u16)(q * (vec_u16)vec_load(a->divisor + (i & each)) == x) & q & 1;
    return q;
}
INLINE void means_of_row(const along_t *a, const byte_divisors_t *by, ptrdiff_t r,
                         const int ties) {
    const ptrdiff_t n = a->n, from = r * a->pitch;
    const vec_t flip = (vec_t)((vec_u8){0} + by->flip);
    uint8_t *y = (uint8_t *)a->to + r * a->to_pitch;
    vec_u16 sums[4];
    ptrdiff_t i = 0;
#define MEANS_AT(j)                                                                               \
    (flip ^ LOW_HALVES(byte_quotients(by, i + (j) * SHORTS, sums[j], ties),                        \
                       byte_quotients(by, i + ((j) + 1) * SHORTS, sums[(j) + 1], ties),            \
                       (uint8_t *)0))
    for (; i + 2 * VEC_BYTES <= n; i += 2 * VEC_BYTES) {
        add_shorts(a, from + i, sums, 4);
        vec_store(y + i, MEANS_AT(0));
        vec_store(y + i + VEC_BYTES, MEANS_AT(2));
    }
    for (; i < n; i += VEC_BYTES) {
        if (n >= VEC_BYTES && i + VEC_BYTES > n) i = n - VEC_BYTES;
        add_shorts(a, from + i, sums, 2);
        if (n < VEC_BYTES)
            vec_store_part(y, MEANS_AT(0), (size_t)n);
        else
            vec_store(y + i, MEANS_AT(0));
    }
}
static void means_along(const along_t *a, const byte_divisors_t *by) {
    for (ptrdiff_t r = 0; r < a->rows; r++)
        if (by->ties)
            means_of_row(a, by, r, 1);
        else
            means_of_row(a, by, r, 0);
}

#endif
