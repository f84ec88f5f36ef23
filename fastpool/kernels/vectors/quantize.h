/* Quantised means: sums of 8-bit elements as elements of another scale.
 *
 * The total t of a window with divisor d has the mean t * p / (q * d) in steps of the result, where
 * p / q is the quotient of the scales (with p * 2**shift of the struct for p). It is rounded,
 * halves to even, and the zero point is added.
 *
 * The factor p / (q * d) is high + low, and high has so few bits that its product with a total is
 * exact, if d is at most 2**44. So the mean is off by at most 2**-51 of itself, and is exact if
 * it is the middle of two integers: such a number has few bits. One that is not is at least
 * 1 / (2 * q * d) from the middle. Means beyond 2**9 saturate, and those within are off by 2**-42
 * at most. So all are rounded right if q * d is at most 2**40. If it is not, or if there is no
 * fused operation, integers of 128 bits decide on what is near a middle: d is at most 2**53.
 *
 * The same in floats: those within are off by 2**-15 at most, so all are rounded right if q * d is
 * at most 2**13. If it is not, doubles make the means again that are near a middle. */
#ifndef FASTPOOL_QUANTIZE_H
#define FASTPOOL_QUANTIZE_H

#include "quick_quotients.h"

typedef struct {
    int64_t p, q;          /* the quotient of the scales is p * 2**shift / q */
    int shift;
    double step;           /* the same, rounded */
    double x_zero, y_zero; /* zero points */
    double least, most;    /* of the result's type */
} quantization_t;

/* Rows of sums, of floats or doubles, and what they become. */
typedef struct {
    const quantization_t *to;
    const char *sums;
    ptrdiff_t sums_pitch, pitch; /* bytes from one row to the next, of sums and of results */
    ptrdiff_t rows, n;
    const double *by;         /* divisors: of all, or of each of a row */
    const double *zeros;      /* what sums exceed their totals by */
    const double *high, *low; /* parts of the factors */
    const float *zeros_f, *high_f, *low_f; /* the same as floats, if `in_floats` */
    int one;                  /* of all */
    int of_floats;
    int in_floats;            /* 2, if q * d is small enough for floats */
    int sure;                 /* are all q * d small enough? */
} quantize_t;

#define MOST_SURE 0x1p40
#define MOST_SURE_FLOATS 0x1p13
#define MOST_FLOAT_TOTAL 0x1p18 /* more of its bits would leave too few for the factor */
#define NEAR_HALF_FLOATS (0.5f - 0x1p-14f)
#define NEAR_HALF (0.5 - 0x1p-40)

#if VEC_BYTES == 64
INLINE vec_f64 lesser(vec_f64 a, vec_f64 b) {
    return (vec_f64)_mm512_min_pd((__m512d)a, (__m512d)b);
}
INLINE vec_f64 greater(vec_f64 a, vec_f64 b) {
    return (vec_f64)_mm512_max_pd((__m512d)a, (__m512d)b);
}
#elif VEC_BYTES == 32
INLINE vec_f64 lesser(vec_f64 a, vec_f64 b) {
    return (vec_f64)_mm256_min_pd((__m256d)a, (__m256d)b);
}
INLINE vec_f64 greater(vec_f64 a, vec_f64 b) {
    return (vec_f64)_mm256_max_pd((__m256d)a, (__m256d)b);
}
#else
INLINE vec_f64 lesser(vec_f64 a, vec_f64 b) {
    vec_u64 less = (vec_u64)(a < b);
    return (vec_f64)(((vec_u64)a & less) | ((vec_u64)b & ~less));
}
INLINE vec_f64 greater(vec_f64 a, vec_f64 b) {
    vec_u64 more = (vec_u64)(a > b);
    return (vec_f64)(((vec_u64)a & more) | ((vec_u64)b & ~more));
}
#endif

/* Set the parts of the factor of windows with divisor d, whose totals are below 2**8 * d. */
static void split_factor(const quantization_t *to, double d, double *high, double *low) {
    *low = 0;
    *high = d ? to->step / d : 0; /* (no elements: their total is 0) */
#if HAS_FMA
    uint64_t bits = f64_bits(*high), cleared = 0;
    for (double totals = d * 0x1p8; totals >= 1 && cleared < 52; totals *= 0.5) cleared++;
    if (!d) return;
    bits &= ~0ULL << cleared;
    BITS_OF(*high, bits);
    *low = __builtin_fma(-(*high * d), (double)to->q, (double)to->p * power_of_two(to->shift)) /
        ((double)to->q * d);
#endif
}

/* The same as floats, of totals below a limit. */
static void split_factor_floats(double high, double low, double totals, float *high_f,
                                float *low_f) {
    const int cleared = 53 - 24 + exponent_of(totals) + 1;
    uint64_t bits = f64_bits(high) & ~0ULL << cleared;
    double exact;
    BITS_OF(exact, bits);
    *high_f = (float)exact, *low_f = (float)(high - exact + low);
}

/* Return whether a * b * 2**shift is less than (-1), equal to (0) or greater than (1) c * d. These
 * are below 2**127 in magnitude, b and d are not negative, and the shift is below 64. */
#ifdef __SIZEOF_INT128__
static int compare_products(int64_t a, int64_t b, int shift, int64_t c, int64_t d) {
    __int128 left = (__int128)a * b * ((__int128)1 << shift), right = (__int128)c * d;
    return (left > right) - (left < right);
}
#else /* (processors of 32 bits) */
typedef struct {
    int64_t high;
    uint64_t low;
} wide_int;
static wide_int wide_product(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = (uint64_t)b;
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
    uint64_t ends = x0 * y0, middle = x1 * y0 + (ends >> 32), other = x0 * y1 + (uint32_t)middle;
    uint64_t high = x1 * y1 + (middle >> 32) + (other >> 32);
    uint64_t low = other << 32 | (uint32_t)ends;
    if (a < 0) low = -low, high = ~high + !low;
    return (wide_int){(int64_t)high, low};
}
static int compare_products(int64_t a, int64_t b, int shift, int64_t c, int64_t d) {
    wide_int left = wide_product(a, b), right = wide_product(c, d);
    if (shift) {
        left.high = (int64_t)((uint64_t)left.high << shift | left.low >> (64 - shift));
        left.low <<= shift;
    }
    if (left.high != right.high) return left.high > right.high ? 1 : -1;
    return (left.low > right.low) - (left.low < right.low);
}
#endif

/* The mean of a total that is close to the middle of `lower` and the next integer. */
static double settle_mean(double total, double by, double lower, const quantization_t *to) {
    if (!(lower > -0x1p9 && lower < 0x1p9)) return lower; /* it saturates */
    int64_t divisor = (int64_t)by, integer = (int64_t)lower;
    int order = compare_products(2 * (int64_t)total, to->p, to->shift,
                                 (2 * integer + 1) * divisor, to->q);
    return lower + (order > 0 || (order == 0 && integer % 2));
}

/* n results of WIDE, as the low bits of doubles. `by` are their divisors, one if `one`. */
INLINE vec_f64 quantize_vector(const char *sums, ptrdiff_t n, const double *by, vec_f64 zeros,
                               vec_f64 high, vec_f64 low, const quantize_t *d) {
    const vec_f64 magic = 0x1.8p52 - (vec_f64){0};
    const quantization_t *to = d->to;
    vec_f64 total = (vec_f64)(d->of_floats ? wide_f32((const float *)sums) : vec_load(sums));
    total -= zeros;
    vec_f64 mean = MULTIPLY_ADD_f64(total, low, total * high), whole = mean + magic;
    if (!d->sure) {
        vec_f64 lower = whole - magic, half = mean - lower;
        for (ptrdiff_t i = 0; i < n; i++)
            if (half[i] > NEAR_HALF || half[i] < -NEAR_HALF)
                lower[i] = settle_mean(total[i], by[d->one ? 0 : i], lower[i] - (half[i] < 0), to);
        whole = lower + magic;
    }
    whole -= magic - to->y_zero;
    return lesser(greater(whole, to->least + (vec_f64){0}), to->most + (vec_f64){0}) + magic;
}

/* Set n results from the sums at i on: n <= WIDE. Callers pass constants, but for a last part. */
INLINE void quantize_some(uint8_t *y, const char *sums, ptrdiff_t i, ptrdiff_t n, vec_f64 zeros,
                          vec_f64 high, vec_f64 low, const quantize_t *d) {
    const size_t item = d->of_floats ? 4 : 8;
    char part[VEC_BYTES];
    sums += (size_t)i * item;
    if (n < WIDE) {
        vec_store(part, vec_load_part(sums, (size_t)n * item));
        sums = part;
    }
    if (!d->one) { /* (the arrays go on for a vector) */
        zeros = (vec_f64)vec_load(d->zeros + i);
        high = (vec_f64)vec_load(d->high + i);
        low = (vec_f64)vec_load(d->low + i);
    }
    vec_f64 v = quantize_vector(sums, n, d->one ? d->by : d->by + i, zeros, high, low, d);
    __typeof__(LOW_8_f64(v)) results = LOW_8_f64(v);
    memcpy(y + i, &results, (size_t)n);
}

#if VEC_BYTES == 64
INLINE vec_f32 within(vec_f32 x, vec_f32 least, vec_f32 most) {
    return (vec_f32)_mm512_min_ps(_mm512_max_ps((__m512)x, (__m512)least), (__m512)most);
}
#elif VEC_BYTES == 32
INLINE vec_f32 within(vec_f32 x, vec_f32 least, vec_f32 most) {
    return (vec_f32)_mm256_min_ps(_mm256_max_ps((__m256)x, (__m256)least), (__m256)most);
}
#else
INLINE vec_f32 within(vec_f32 x, vec_f32 least, vec_f32 most) {
    vec_u32 below = (vec_u32)(x < least), above = (vec_u32)(x > most);
    return (vec_f32)(((vec_u32)x & ~below & ~above) | ((vec_u32)least & below) |
                     ((vec_u32)most & above));
}
#endif

/* Set n results of sums that are floats, in floats. */
INLINE void quantize_row_in_floats(uint8_t *y, const float *sums, ptrdiff_t n,
                                   const quantize_t *d) {
    const ptrdiff_t lanes = VEC_BYTES / 4;
    const vec_f32 magic = 0x1.8p23f - (vec_f32){0};
    const vec_f32 least = (float)(d->to->least - d->to->y_zero) - (vec_f32){0};
    const vec_f32 most = (float)(d->to->most - d->to->y_zero) - (vec_f32){0};
    const vec_i32 y_zero = (int32_t)d->to->y_zero - (vec_i32){0};
    vec_f32 zeros = *d->zeros_f - (vec_f32){0};
    vec_f32 high = *d->high_f - (vec_f32){0}, low = *d->low_f - (vec_f32){0};
    for (ptrdiff_t i = 0; i < n; i += lanes) {
        vec_f32 sum, total, mean, whole;
        if (i > n - lanes && n >= lanes) i = n - lanes; /* (some are made again) */
        if (n >= lanes)
            sum = (vec_f32)vec_load(sums + i);
        else
            sum = (vec_f32)vec_load_part(sums, (size_t)n * sizeof *sums);
        if (!d->one) { /* (the arrays go on for a vector) */
            zeros = (vec_f32)vec_load(d->zeros_f + i);
            high = (vec_f32)vec_load(d->high_f + i), low = (vec_f32)vec_load(d->low_f + i);
        }
        total = sum - zeros;
        mean = within(MULTIPLY_ADD_f32(total, low, total * high), least, most);
        whole = mean + magic;
        __typeof__(LOW_8_f32(whole)) results = LOW_8_f32((vec_i32)whole + y_zero);
        if (n >= lanes)
            memcpy(y + i, &results, (size_t)lanes);
        else
            memcpy(y, &results, (size_t)n);
        if (d->in_floats < 2) {
            vec_f32 half = mean - (whole - magic);
            if (vec_any((vec_t)((half > NEAR_HALF_FLOATS) | (half < -NEAR_HALF_FLOATS))))
                for (ptrdiff_t k = i; k < i + lanes && k < n; k += WIDE) {
                    const ptrdiff_t first = d->one ? 0 : k;
                    const vec_f64 z = d->zeros[first] - (vec_f64){0};
                    const vec_f64 h = d->high[first] - (vec_f64){0};
                    const vec_f64 l = d->low[first] - (vec_f64){0};
                    quantize_some(y, (const char *)sums, k, n - k < WIDE ? n - k : WIDE, z, h, l,
                                  d);
                }
        }
    }
}

INLINE void quantize_rows_in_floats(void *results, const quantize_t *d) {
    const int flat = d->one && d->pitch == d->n && d->sums_pitch == d->n * 4; /* rows are one */
    const ptrdiff_t n = flat ? d->rows * d->n : d->n, rows = flat ? 1 : d->rows;
    for (ptrdiff_t r = 0; r < rows; r++)
        quantize_row_in_floats((uint8_t *)results + r * d->pitch,
                               (const float *)(d->sums + r * d->sums_pitch), n, d);
}

INLINE void quantize_rows_of(void *results, const quantize_t *d) {
    const ptrdiff_t item = d->of_floats ? 4 : 8;
    const int flat = d->one && d->pitch == d->n && d->sums_pitch == d->n * item; /* rows are one */
    const ptrdiff_t n = flat ? d->rows * d->n : d->n, rows = flat ? 1 : d->rows;
    const vec_f64 zeros = d->zeros[0] - (vec_f64){0};
    const vec_f64 high = d->high[0] - (vec_f64){0}, low = d->low[0] - (vec_f64){0};
    for (ptrdiff_t r = 0; r < rows; r++) {
        const char *sums = d->sums + r * d->sums_pitch;
        uint8_t *y = (uint8_t *)results + r * d->pitch;
        ptrdiff_t i = 0;
        for (; i + WIDE <= n; i += WIDE) quantize_some(y, sums, i, WIDE, zeros, high, low, d);
        if (i < n && n >= WIDE) /* (some are made again) */
            quantize_some(y, sums, n - WIDE, WIDE, zeros, high, low, d);
        else if (i < n)
            quantize_some(y, sums, i, n - i, zeros, high, low, d);
    }
}

#define QUANTIZE_ROWS(are_sure, are_floats)                                                       \
    if (d->sure == are_sure && d->of_floats == are_floats) {                                      \
        quantize_t with = *d;                                                                     \
        with.sure = are_sure, with.of_floats = are_floats;                                        \
        quantize_rows_of(results, &with);                                                         \
    }
static void quantize_rows(void *results, const quantize_t *d) {
    if (d->in_floats) {
        const quantize_t with = *d; /* (which results cannot alias) */
        quantize_rows_in_floats(results, &with);
        return;
    }
    QUANTIZE_ROWS(0, 0) QUANTIZE_ROWS(0, 1) QUANTIZE_ROWS(1, 0) QUANTIZE_ROWS(1, 1)
}

#endif
