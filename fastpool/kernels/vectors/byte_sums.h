/* Sums of bytes whose windows overlap, in 16 bits. Rows enter and leave the sums down columns. These
 * are added along rows, where means of few taps take one multiplication more. */
#ifndef FASTPOOL_BYTE_SUMS_H
#define FASTPOOL_BYTE_SUMS_H

#include "folds.h"
#include "quick_quotients.h"

enum { MOST_BYTE_ROWS = 128 }; /* that a sum holds beside a sign */
enum { MOST_BYTE_TAPS = 255 }; /* that a sum holds that has a sign only if bytes have */
enum { SHORTS = VEC_BYTES / 2 };
typedef VECTOR(uint8_t, VEC_BYTES / 2) half_u8;
INLINE vec_i16 widened(half_u8 v) {
#if VEC_BYTES == 64
    return (vec_i16)_mm512_cvtepu8_epi16((__m256i)v);
#elif VEC_BYTES == 32
    return (vec_i16)_mm256_cvtepu8_epi16((__m128i)v);
#else
    return __builtin_convertvector(v, vec_i16);
#endif
}

/* ---- n sums down columns, with room for a vector ---- */

typedef struct {
    int16_t *to;
    const int16_t *before;     /* sums of the row before; NULL if sums begin */
    const char *enter, *leave; /* rows of bytes */
    ptrdiff_t entering, leaving, pitch, n;
    uint8_t flip; /* of signed bytes: 128 */
} bytes_t;

INLINE vec_i16 bytes_at(const bytes_t *a, const char *p) {
    half_u8 bytes;
    if (a->n < SHORTS) {
        const vec_t some = vec_load_part(p, (size_t)a->n);
        memcpy(&bytes, &some, sizeof bytes);
    } else
        memcpy(&bytes, p, sizeof bytes);
    return widened(bytes ^ ((half_u8){0} + a->flip));
}
INLINE vec_i16 add_some_bytes(const bytes_t *a, ptrdiff_t i, ptrdiff_t entering,
                              ptrdiff_t leaving) {
    vec_i16 v = a->before ? (vec_i16)vec_load(a->before + i) : (vec_i16){0};
    v -= (int16_t)((entering - leaving) * a->flip);
    for (ptrdiff_t r = 0; r < entering; r++) v += bytes_at(a, a->enter + r * a->pitch + i);
    for (ptrdiff_t r = 0; r < leaving; r++) v -= bytes_at(a, a->leave + r * a->pitch + i);
    return v;
}
INLINE void add_rows_of_bytes(const bytes_t *a, ptrdiff_t entering, ptrdiff_t leaving) {
    const ptrdiff_t last = a->n < SHORTS ? 0 : a->n - SHORTS;
    const vec_i16 tail = add_some_bytes(a, last, entering, leaving); /* (`to` may be `before`) */
    for (ptrdiff_t i = 0; i < last; i += SHORTS)
        vec_store(a->to + i, (vec_t)add_some_bytes(a, i, entering, leaving));
    vec_store(a->to + last, (vec_t)tail);
}
static void add_bytes(const bytes_t *a) {
    if (a->entering == 1 && a->leaving == 1)
        add_rows_of_bytes(a, 1, 1);
    else if (a->entering == 3 && a->leaving == 0)
        add_rows_of_bytes(a, 3, 0);
    else
        add_rows_of_bytes(a, a->entering, a->leaving);
}

/* Set n floats, or add to them. */
static VECTORISED void shorts_to_floats(float *to, const int16_t *from, ptrdiff_t n, int add) {
    for (ptrdiff_t i = 0; i < n; i++) to[i] = (add ? to[i] : 0) + (float)from[i];
}

/* ---- sums along rows ---- */

/* The taps of an output are two groups, each of neighbours that are `step` apart. */
typedef struct {
    const int16_t *taps[2];
    ptrdiff_t count[2], step[2];
    ptrdiff_t rows, n, pitch, to_pitch; /* pitches in elements */
    int stride;                         /* of outputs: 1 or 2 */
    void *to;
    int divisor, times, shift, ties, add; /* of means: see byte_quotients */
    uint8_t flip;
    int kept; /* bits of sums, if these are extended by their signs */
} along_t;

INLINE void add_shorts(const along_t *a, ptrdiff_t i, vec_u16 *sums, const int count) {
    for (int j = 0; j < count; j++) sums[j] = (vec_u16){0};
    for (int g = 0; g < 2; g++) {
        const int16_t *p = a->taps[g] + i;
        for (ptrdiff_t t = a->count[g]; t > 0; t--, p += a->step[g])
            for (int j = 0; j < count; j++) sums[j] += (vec_u16)vec_load(p + j * SHORTS);
    }
}
INLINE void strided_sums(const along_t *a, ptrdiff_t i, vec_u16 *sums, const int count,
                         const int stride) {
    vec_u16 all[8];
    if (stride == 1) {
        add_shorts(a, i, sums, count);
        return;
    }
    add_shorts(a, 2 * i, all, 2 * count);
    for (int j = 0; j < count; j++)
        sums[j] = (vec_u16)LOW_HALVES(all[2 * j], all[2 * j + 1], (uint16_t *)0);
}
INLINE along_t row_along(const along_t *a, ptrdiff_t r, ptrdiff_t size) {
    along_t row = *a;
    for (int g = 0; g < 2; g++) row.taps[g] += r * a->pitch;
    row.to = (char *)a->to + r * a->to_pitch * size;
    return row;
}

/* As sums, with room for a vector. */
static void shorts_along(const along_t *a) {
    for (ptrdiff_t r = 0; r < a->rows; r++) {
        const along_t row = row_along(a, r, 2);
        vec_u16 sums[4];
        for (ptrdiff_t i = 0; i < a->n; i += 4 * SHORTS) {
            add_shorts(&row, i, sums, 4);
            for (int j = 0; j < 4; j++) vec_store((int16_t *)row.to + i + j * SHORTS, (vec_t)sums[j]);
        }
    }
}

/* As floats. Of `wide` sums 16 bits hold only the taps. */
INLINE vec_i32 half_widened(const int16_t *p) {
#if VEC_BYTES == 64
    return (vec_i32)_mm512_cvtepi16_epi32(LOAD_LANES(p));
#elif VEC_BYTES == 32
    return (vec_i32)_mm256_cvtepi16_epi32(LOAD_LANES(p));
#else
    shorts_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vec_i32);
#endif
}
INLINE void floats_of_row(const along_t *a, const int stride, const int wide) {
    const int part = a->n < SHORTS;
    for (ptrdiff_t i = 0; i < a->n; i += SHORTS) {
        vec_i32 low = {0}, high = {0};
        vec_f32 floats[2];
        if (!part && i + SHORTS > a->n) i = a->n - SHORTS;
        if (wide) {
            for (int g = 0; g < 2; g++) {
                const int16_t *p = a->taps[g] + i;
                for (ptrdiff_t t = a->count[g]; t > 0; t--, p += a->step[g])
                    low += half_widened(p) & a->kept,
                        high += half_widened(p + SHORTS / 2) & a->kept;
            }
        } else {
            vec_u16 sums[1];
            int16_t lanes[SHORTS];
            strided_sums(a, i, sums, 1, stride);
            vec_store(lanes, (vec_t)sums[0]);
            low = half_widened(lanes) & a->kept;
            high = half_widened(lanes + SHORTS / 2) & a->kept;
        }
        floats[0] = __builtin_convertvector(low, vec_f32);
        floats[1] = __builtin_convertvector(high, vec_f32);
        for (int j = 0; j < 2; j++) {
            const ptrdiff_t left = a->n - i - j * SHORTS / 2;
            float *to = (float *)a->to + i + j * SHORTS / 2;
            if (left < SHORTS / 2)
                vec_store_part(to, (vec_t)floats[j], left < 0 ? 0 : (size_t)left * 4);
            else
                vec_store(to, (vec_t)floats[j]);
        }
    }
}
static void floats_along(const along_t *a, int wide) {
    for (ptrdiff_t r = 0; r < a->rows; r++) {
        const along_t row = row_along(a, r, 4);
        if (wide)
            floats_of_row(&row, 1, 1);
        else if (a->stride == 1)
            floats_of_row(&row, 1, 0);
        else
            floats_of_row(&row, 2, 0);
    }
}

/* As means. */
INLINE vec_u16 high_product(vec_u16 a, uint16_t b) {
    const vec_u16 v = (vec_u16){0} + b;
#if VEC_BYTES == 64
    return (vec_u16)_mm512_mulhi_epu16((__m512i)a, (__m512i)v);
#elif VEC_BYTES == 32
    return (vec_u16)_mm256_mulhi_epu16((__m256i)a, (__m256i)v);
#elif defined(__SSE2__)
    return (vec_u16)_mm_mulhi_epu16((__m128i)a, (__m128i)v);
#else
    const vec_u32 low = ((vec_u32)a & 0xffff) * b >> 16, high = ((vec_u32)a >> 16) * b;
    return (vec_u16)(low | (high & 0xffff0000));
#endif
}
/* Set how sums of at most `divisor` bytes are divided. Return whether no quotient can be wrong:
 * those by 2**(16 + shift) / times are larger, by less than 1 / divisor. */
static int set_byte_divisor(along_t *a, double by, int is_signed, int rounding) {
    const int divisor = by >= 2 && by <= MOST_BYTE_TAPS ? (int)by : 0;
    const int half = rounding <= HALF_AWAY ? divisor / 2 : 0;
    if (!divisor || (is_signed && (rounding == HALF_AWAY || rounding == TRUNC))) return 0;
    a->shift = 0;
    while (2 << a->shift < divisor) a->shift++;
    a->times = ((1 << (16 + a->shift)) - 1) / divisor + 1;
    a->divisor = divisor, a->ties = rounding == HALF_EVEN && divisor % 2 == 0;
    a->add = half + 128 * divisor * is_signed, a->flip = is_signed ? 128 : 0;
    return 256 * divisor * (a->times * divisor - (1 << (16 + a->shift))) < 1 << (16 + a->shift);
}
INLINE vec_u16 byte_quotients(const along_t *a, vec_u16 sums, const int ties) {
    const vec_u16 x = sums + (uint16_t)a->add;
    vec_u16 q = high_product(x, (uint16_t)a->times) >> a->shift;
    if (ties) q -= (vec_u16)(q * (uint16_t)a->divisor == x) & q & 1;
    return q;
}
INLINE void means_of_row(const along_t *a, const int stride, const int ties) {
    const ptrdiff_t n = a->n;
    const vec_t flip = (vec_t)((vec_u8){0} + a->flip);
    uint8_t *y = (uint8_t *)a->to;
    vec_u16 sums[4];
    ptrdiff_t i = 0;
#define MEANS_AT(j)                                                                               \
    (flip ^ LOW_HALVES(byte_quotients(a, sums[j], ties), byte_quotients(a, sums[j + 1], ties),    \
                       (uint8_t *)0))
    for (; i + 2 * VEC_BYTES <= n; i += 2 * VEC_BYTES) {
        strided_sums(a, i, sums, 4, stride);
        vec_store(y + i, MEANS_AT(0));
        vec_store(y + i + VEC_BYTES, MEANS_AT(2));
    }
    for (; i < n; i += VEC_BYTES) {
        if (n >= VEC_BYTES && i + VEC_BYTES > n) i = n - VEC_BYTES;
        strided_sums(a, i, sums, 2, stride);
        if (n < VEC_BYTES)
            vec_store_part(y, MEANS_AT(0), (size_t)n);
        else
            vec_store(y + i, MEANS_AT(0));
    }
}
static void means_along(const along_t *a) {
    for (ptrdiff_t r = 0; r < a->rows; r++) {
        const along_t row = row_along(a, r, 1);
        if (a->stride == 1 && !a->ties)
            means_of_row(&row, 1, 0);
        else if (a->stride == 1)
            means_of_row(&row, 1, 1);
        else
            means_of_row(&row, 2, a->ties);
    }
}

#endif
