/* Quotients of sums, rounded once to the type of the result.
 *
 * A sum is the exact number high + low + rest of three doubles. Each is at most half a unit of
 * the one before it, but for divide_f64, which puts high and low in order first. Most sums are
 * exact in one double. The quotient is computed in double, and rounded to the result's type. To
 * give what one rounding would, the quotient is made odd if it is not exact. Doubles have no bit to
 * spare: if the error could decide, `settle` does by the exact remainder. */
#ifndef FASTPOOL_QUOTIENTS_H
#define FASTPOOL_QUOTIENTS_H

#include "float_flags.h"
#include "wide.h"

enum { HALF_EVEN, HALF_AWAY, TRUNC, FLOOR };

typedef struct {
    const double *high, *low, *rest; /* low and rest: NULL if all of them are 0 */
    /* If not 0, each exact sum is at most this far away. If such sums could have other results than
     * the exact ones, `unsure` is set, and results are undefined. Only floats look at it. */
    double bound;
    int *unsure;
} sums_t;

/* Sum i is divided by counts[i] * divisor. */
typedef struct {
    const double *counts, *reciprocals; /* NULL: all are 1 */
    double divisor, reciprocal;
    int powers_of_two; /* all divisors are: quotients in double are exact */
    int rounding;      /* of integers */
} divisors_t;

INLINE double divisor_at(const divisors_t *d, ptrdiff_t i) {
    return d->counts ? d->counts[i] * d->divisor : d->divisor;
}

INLINE uint64_t f64_bits(double x) {
    uint64_t bits;
    BITS_OF(bits, x);
    return bits;
}
INLINE double f64_of_bits(uint64_t bits) {
    double value;
    BITS_OF(value, bits);
    return value;
}
INLINE uint32_t f32_bits(float x) {
    uint32_t bits;
    BITS_OF(bits, x);
    return bits;
}

/* ---- numbers as their parts, and sums without error ---- */

INLINE double power_of_two(int e) { /* -1074 <= e <= 1023 */
    return f64_of_bits(e < -1022 ? 1ULL << (e + 1074) : (uint64_t)(e + 1023) << 52);
}
INLINE int exponent_of(double x) { /* of a normal number */
    uint64_t bits;
    BITS_OF(bits, x);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}
INLINE double absolute(double x) { return x < 0 ? -x : x; }
INLINE double nearest_int(double x) {
    if (!(absolute(x) < 0x1p52)) return x;
    return x < 0 ? (x - 0x1p52) + 0x1p52 : (x + 0x1p52) - 0x1p52;
}
INLINE int is_odd(double x) { return nearest_int(x * 0.5) * 2 != x; } /* of an integer */
INLINE void two_sum(double a, double b, double *sum, double *error) {
    double s = a + b, t = s - a;
    *error = (a - (s - t)) + (b - t);
    *sum = s;
}
#define TWO_SUM(a, b, sum, error)                                                                 \
    {                                                                                             \
        vec_f64 s_ = (a) + (b), t_ = s_ - (a);                                                    \
        error = ((a) - (s_ - t_)) + ((b) - t_);                                                   \
        sum = s_;                                                                                 \
    }
INLINE double product_error(double a, double b, double product) {
    double c = a * 0x8000001p0, d = b * 0x8000001p0; /* (2**27 + 1: Veltkamp's and Dekker's) */
    double ah = c - (c - a), bh = d - (d - b), al = a - ah, bl = b - bh;
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl;
}

/* Return the sign of the exact sum of n doubles, which are overwritten. */
static int sign_of_sum(double *x, int n) {
    for (;;) {
        double others = 0;
        for (int i = 1; i < n; i++) two_sum(x[i], x[i - 1], &x[i], &x[i - 1]);
        for (int i = 0; i < n - 1; i++) others += absolute(x[i]);
        if (others == 0 || others < absolute(x[n - 1]) * 0.999)
            return (x[n - 1] > 0) - (x[n - 1] < 0);
    }
}

/* ---- one quotient, by its exact remainder ---- */

/* Compare the sum with (m + half) * unit * d. */
static int compare_product(const double *sum, double m, double half, double unit, double d) {
    double value = m * unit, product = value * d;
    double terms[6] = {sum[2], sum[1], -product_error(value, d, product),
                       -half * unit * d, -product, sum[0]};
    return sign_of_sum(terms, 6);
}

/* Return (high + low + rest) / d, rounded to `precision` bits, as a multiple of at least
 * 2**(least - precision + 1). Too large a result is a power of two or inf. */
static double settle(double high, double low, double rest, double d, int precision, int least) {
    double sum[3] = {high, low, rest}, sign = (high < 0) == (d < 0) ? 1 : -1, scale = sign, q;
    const double most = power_of_two(precision);
    if (!(high - high == 0)) return d < 0 ? -high : high;
    d = absolute(d);
    for (int pass = 0; pass < 2; pass++) {
        two_sum(sum[1], sum[2], &sum[1], &sum[2]);
        two_sum(sum[0], sum[1], &sum[0], &sum[1]);
    }
    if (sum[0] == 0) return 0;
    if (sum[0] < 0)
        for (int i = 0; i < 3; i++) sum[i] = -sum[i];
    /* Keep all products below normal and finite. */
    if (d < 1) d *= 0x1p128, scale *= 0x1p128, least -= 128; /* (the sum was shrunk) */
    if (sum[0] < 0x1p-800) {
        scale *= 0x1p-200, least += 200;
        for (int i = 0; i < 3; i++) sum[i] *= 0x1p200;
    } else if (sum[0] > 0x1p900) {
        scale *= 0x1p200, least -= 200;
        for (int i = 0; i < 3; i++) { /* (of what is too small now, the sign is enough) */
            double x = sum[i] * 0x1p-200;
            sum[i] = x != 0 ? x : (sum[i] > 0) * 0x1p-1074 - (sum[i] < 0) * 0x1p-1074;
        }
    }
    q = sum[0] / d;
    /* At a power of two, begin with the finer results below it. */
    for (int e = exponent_of(q * (1 - 0x1p-50));; e++) {
        double m, unit;
        if (e < least) e = least;
        unit = power_of_two(e - precision + 1);
        m = nearest_int(q / unit);
        if (m >= most) {
            m = most;
            if (compare_product(sum, m, 0, unit, d) > 0) continue;
        }
        while (m < most) {
            int odd = is_odd(m), above = compare_product(sum, m, 0.5, unit, d);
            if (above < 0 || (above == 0 && !odd)) break;
            m += 1;
        }
        while (m <= most && m > 0) {
            int odd = is_odd(m), below = compare_product(sum, m, -0.5, unit, d);
            if (below > 0 || (below == 0 && !odd)) return m * unit * scale;
            m -= 1;
        }
        if (m == 0) return 0;
    }
}

INLINE double settle_at(const sums_t *s, const divisors_t *d, ptrdiff_t i, int precision,
                        int least) {
    return settle(s->high[i], s->low ? s->low[i] : 0, s->rest ? s->rest[i] : 0, divisor_at(d, i),
                  precision, least);
}

/* ---- one quotient of a sum that is one double, or two ---- */

/* Return q, cut off to 24 bits, the last of which is set unless that is exact: then rounding it to
 * fewer bits is rounding q. */
INLINE float odd_float(double q) {
    float x = (float)q;
    uint32_t bits = f32_bits(x);
    if (x != q && !(bits & 1)) bits += (absolute(q) > absolute(x)) ? 1 : -1;
    return bits_to_f32(bits);
}
/* Return y, or its neighbour that is nearer to (high + low) / d; y is one of the nearest two.
 * Return NAN if this cannot tell. */
static double nearest_double(double y, double high, double low, double d) {
    uint64_t bits = f64_bits(y);
    double product = y * d, half, rest, error;
    if (!(bits << 12) || (bits >> 52 & 0x7ff) < 200 || (bits >> 52 & 0x7ff) > 1900)
        return NAN; /* (a power of two has another unit below, and products may overflow) */
    half = power_of_two(exponent_of(y) - 53) * absolute(d);
    two_sum((high - product) - product_error(y, d, product), low, &rest, &error);
    if (y < 0) rest = -rest, error = -error;
    if (d < 0) rest = -rest, error = -error;
    if (rest > half || (rest == half && (error > 0 || (error == 0 && bits & 1)))) bits++;
    if (rest < -half || (rest == -half && (error < 0 || (error == 0 && bits & 1)))) bits--;
    BITS_OF(y, bits);
    return y;
}

/* ---- WIDE quotients in double, and what they become ---- */

INLINE vec_t load_some(const double *p, ptrdiff_t n) {
    return n >= WIDE ? vec_load(p) : vec_load_part(p, (size_t)n * 8);
}
/* Return sum - q * by, for q next to sum / by. It is NaN next to an infinity, and without a fused
 * operation where a product overflows. */
INLINE vec_f64 remainders(vec_f64 sum, vec_f64 q, vec_f64 by) {
#if VEC_BYTES == 64
    return (vec_f64)_mm512_fnmadd_pd((__m512d)q, (__m512d)by, (__m512d)sum);
#elif VEC_BYTES == 32
    return (vec_f64)_mm256_fnmadd_pd((__m256d)q, (__m256d)by, (__m256d)sum);
#else
    vec_f64 c = q * 0x8000001p0, d = by * 0x8000001p0, product = q * by;
    vec_f64 high = c - (c - q), other = d - (d - by), low = q - high, rest = by - other;
    d = (sum - product) - (((high * other - product) + high * rest + low * other) + low * rest);
    return d + (d - d); /* (of an infinity NaN) */
#endif
}

/* Return r with its last bit set where `below`, of what comes after it, is not 0. */
INLINE vec_f64 made_odd(vec_f64 r, vec_f64 below) {
    const vec_f64 zero = {0};
    vec_u64 bits = (vec_u64)r, even = ~bits & 1, some = (vec_u64)(below != zero);
    vec_u64 back = (vec_u64)(below > zero) ^ (vec_u64)(r > zero); /* all bits, or none */
    return (vec_f64)(bits + ((back | 1) & some & (0 - even)));
}
INLINE vec_f64 magnitudes(vec_f64 v) { return (vec_f64)((vec_u64)v & ~(1ULL << 63)); }

typedef struct { /* WIDE sums, and what divides them */
    vec_f64 sum, low, rest, by, reciprocal;
} wide_sums_t;
INLINE wide_sums_t sums_at(const sums_t *s, const divisors_t *d, ptrdiff_t i, ptrdiff_t n) {
    wide_sums_t w = {(vec_f64)load_some(s->high + i, n - i), {0}, {0}, {0}, {0}};
    if (s->low) w.low = (vec_f64)load_some(s->low + i, n - i);
    if (s->rest) w.rest = (vec_f64)load_some(s->rest + i, n - i);
    w.by = d->divisor - (vec_f64){0};
    w.reciprocal = d->reciprocal - (vec_f64){0};
    if (d->counts) {
        w.by *= (vec_f64)load_some(d->counts + i, n - i);
        w.reciprocal *= (vec_f64)load_some(d->reciprocals + i, n - i);
    }
    return w;
}

/* Return WIDE quotients, cut off to 53 bits, the last of which is set unless that is exact. Then
 * rounding them to `precision` bits, at most 51, is rounding the exact ones. */
INLINE vec_f64 odd_quotients(const sums_t *s, const divisors_t *d, ptrdiff_t i, ptrdiff_t n,
                             int precision, int least) {
    const vec_f64 zero = {0};
    wide_sums_t w = sums_at(s, d, i, n);
    vec_f64 q = w.sum * w.reciprocal, below, error;
    lanes_t unsure;
    if (d->powers_of_two && !s->low) return q;
    below = remainders(w.sum, q, w.by) + w.low;
    below = lanes_kept(lanes_equal(below, below), below); /* (of an infinity there is none) */
    q += below * w.reciprocal; /* (0.5 of its units away at most, or hardly more) */
    below = remainders(w.sum, q, w.by);
    if (s->low) {
        TWO_SUM(below, w.low, below, error)
        error += w.rest; /* (rounded: it may not decide the sign if it is large) */
        unsure = lanes_above(magnitudes(error) * 2, magnitudes(below)) & lanes_differ(below, zero);
        below += error;
        /* (Next to 0 there is no last bit. Remainders of larger divisors may be rounded.) */
        unsure |= lanes_equal(q, zero) | lanes_above(magnitudes(w.by), 0x1p50 - zero);
        unsure &= lanes_differ(below, zero) & lanes_equal(below, below);
        if (lanes_any(unsure))
            for (ptrdiff_t j = 0; j < WIDE && i + j < n; j++)
                if (lane_of(unsure, j)) {
                    q[j] = settle_at(s, d, i + j, precision, least);
                    below[j] = 0;
                }
    }
    below = lanes_kept(lanes_equal(below, below), below * w.reciprocal); /* (it has their sign) */
    return made_odd(q, below);
}

/* Return WIDE quotients, and set how far away from them the exact ones may be. */
INLINE vec_f64 close_quotients(const sums_t *s, const divisors_t *d, ptrdiff_t i, ptrdiff_t n,
                               vec_f64 *error) {
    wide_sums_t w = sums_at(s, d, i, n);
    vec_f64 q = w.sum * w.reciprocal;
    *error = (magnitudes(w.low) + magnitudes(w.rest) + s->bound) * magnitudes(w.reciprocal);
    *error = *error * (1 + 0x1p-40) + magnitudes(q) * 0x1p-49;
    *error = lanes_kept(lanes_equal(q - q, (vec_f64){0}), *error); /* (infinities have none) */
    return q;
}

typedef VECTOR(float, VEC_BYTES / 2) wide_f32s;
typedef VECTOR(uint32_t, VEC_BYTES / 2) wide_u32s;
typedef VECTOR(uint16_t, VEC_BYTES / 4) wide_u16s;

/* The bits of a float16 or bfloat16, by the exact value of a float or a settled double. */
INLINE uint16_t f16_bits(float x) {
    uint32_t bits = f32_bits(x), sign = bits >> 16 & 0x8000, u = bits & 0x7fffffff;
    if (u > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (u >= 0x47800000) return (uint16_t)(sign | 0x7c00);
    if (u < 0x38800000) /* (neighbours of 0.5 are 2**-24 apart, as the least halves) */
        return (uint16_t)(sign | (uint32_t)(((bits_to_f32(u) + 0.5f) - 0.5f) * 0x1p24f));
    u += 0xfff + (u >> 13 & 1) - (112u << 23);
    return (uint16_t)(sign | u >> 13);
}
INLINE uint16_t bf16_bits(float x) {
    uint32_t bits = f32_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

INLINE void narrow_f32(float *to, vec_f64 q) {
    wide_f32s results = __builtin_convertvector(q, wide_f32s);
    memcpy(to, &results, sizeof results);
}
INLINE void narrow_f16(float16_t_ *to, vec_f64 q) {
    for (int j = 0; j < WIDE; j++) to[j].bits = f16_bits(odd_float(q[j]));
}
INLINE void narrow_bf16(bfloat16_t_ *to, vec_f64 q) {
    const vec_f64 c = 0x1.8p-81 - (vec_f64){0}; /* (1.5 * 2**52 times the least subnormal) */
    const vec_u64 bits = (vec_u64)q;
    /* (Of subnormals, and also of NaN, whose bits a carry would change.) */
    const vec_u64 added = (vec_u64)(magnitudes(q) < 0x1p-126 - (vec_f64){0}) | (vec_u64)(q != q);
    vec_u64 rounded = (bits + 0xfffffffffff + (bits >> 45 & 1)) & ~0x1fffffffffffULL;
    wide_f32s floats;
    wide_u16s results;
    rounded = (rounded & ~added) | ((vec_u64)((q + c) - c) & added);
    floats = __builtin_convertvector((vec_f64)rounded, wide_f32s);
    results = __builtin_convertvector((wide_u32s)floats >> 16, wide_u16s);
    memcpy(to, &results, sizeof results);
}
#define DEFINE_DIVIDE_NARROW(name, T, precision, least)                                           \
    static void divide_##name(T *y, const sums_t *s, const divisors_t *d, ptrdiff_t n) {          \
        for (ptrdiff_t i = 0; i < n; i += WIDE) {                                                 \
            ptrdiff_t count = n - i < WIDE ? n - i : WIDE;                                        \
            T results[WIDE], others[WIDE];                                                        \
            if (s->bound) {                                                                       \
                vec_f64 error, q = close_quotients(s, d, i, n, &error);                           \
                narrow_##name(results, q - error);                                                \
                narrow_##name(others, q + error);                                                 \
                if (memcmp(results, others, (size_t)count * sizeof(T))) {                         \
                    *s->unsure = 1;                                                               \
                    return;                                                                       \
                }                                                                                 \
            } else                                                                                \
                narrow_##name(results, odd_quotients(s, d, i, n, precision, least));              \
            if (count == WIDE)                                                                    \
                memcpy(y + i, results, sizeof results);                                           \
            else                                                                                  \
                for (ptrdiff_t j = 0; j < count; j++) y[i + j] = results[j];                      \
        }                                                                                         \
    }
DEFINE_DIVIDE_NARROW(f32, float, 24, -126)
DEFINE_DIVIDE_NARROW(f16, float16_t_, 11, -14)
DEFINE_DIVIDE_NARROW(bf16, bfloat16_t_, 8, -126)

INLINE double settle_f64(double y, const sums_t *s, const divisors_t *d, ptrdiff_t i) {
    double by = divisor_at(d, i);
    int quick = !(s->rest && s->rest[i] != 0) && absolute(by) >= 1;
    double settled, high, low;
    two_sum(s->high[i], s->low ? s->low[i] : 0, &high, &low);
    if (quick && y == y) {
        settled = nearest_double(y, high, low, by);
        if (settled == settled) return settled;
    }
    return settle(high, low, s->rest ? s->rest[i] : 0, by, 53, -1022);
}

/* (Here a low sum may be larger than half a unit of the high one.) */
static void divide_f64(double *y, const sums_t *sums, const divisors_t *divisors, ptrdiff_t n) {
    const sums_t s = *sums; /* (stores to y cannot change them) */
    const divisors_t d = *divisors;
    /* Without a rest, a power of two divides the sum, rounded. */
    const int sure = d.powers_of_two && !s.rest && !s.bound;
    for (ptrdiff_t i = 0; i < n; i += WIDE) {
        const ptrdiff_t count = n - i < WIDE ? n - i : WIDE;
        wide_sums_t w = sums_at(&s, &d, i, n);
        vec_f64 results, least, step, error;
        lanes_t differ;
        if (s.low) TWO_SUM(w.sum, w.low, w.sum, w.low)
        results = w.sum * w.reciprocal;
        step = remainders(w.sum, results, w.by) + w.low;
        /* (Quotients of tiny sums may have fewer bits, but those without a remainder.) */
        differ = lanes_above(0x1p-900 - (vec_f64){0}, magnitudes(w.sum)) &
            lanes_differ(step, (vec_f64){0});
        if (!sure) {
            step *= w.reciprocal;
            error = magnitudes(step) * 0x1p-44;
            if (s.bound)
                error += (magnitudes(w.rest) + s.bound) * magnitudes(w.reciprocal) * (1 + 0x1p-40);
            least = results + (step - error);
            results += step + error;
            differ |= lanes_differ(results, least);
        }
        if (lanes_any(differ))
            for (ptrdiff_t j = 0; j < count; j++)
                if (lane_of(differ, j)) {
                    if (s.bound && w.sum[j] - w.sum[j] == 0) {
                        *s.unsure = 1;
                        return;
                    }
                    results[j] = settle_f64(results[j], &s, &d, i + j);
                }
        if (count == WIDE)
            vec_store(y + i, (vec_t)results);
        else
            for (ptrdiff_t j = 0; j < count; j++) y[i + j] = results[j];
    }
}

/* Are the magnitudes of all n sums at most a limit? A NaN is not. */
static int all_within(const double *sums, ptrdiff_t n, double limit) {
    vec_t seen = ~(vec_t){0};
    ptrdiff_t i = 0;
    for (; i + WIDE <= n; i += WIDE) {
        vec_f64 v = (vec_f64)vec_load(sums + i);
        seen &= (vec_t)(v <= limit - (vec_f64){0}) & (vec_t)(v >= -limit - (vec_f64){0});
    }
    for (; i < n; i++)
        if (!(absolute(sums[i]) <= limit)) return 0;
    return !vec_any(~seen);
}

/* ---- integers ---- */

/* WIDE sums below 2**51, divided, as integers in double. A divisor of 0 has a reciprocal of 0. */
#define MAGIC 0x1.8p52 /* what is added to it loses its fraction */
#define ONES(lanes) lanes_kept(lanes, 1.0 - (vec_f64){0})
INLINE vec_f64 round_quotients(vec_f64 sum, vec_f64 by, vec_f64 reciprocal, int rounding) {
    vec_f64 k = (sum * reciprocal + MAGIC) - MAGIC, rest = sum - k * by, half, zero = {0};
    vec_f64 step = ONES(lanes_above(rest * 2, by)) - ONES(lanes_above(-by, rest * 2));
    lanes_t odd;
    k += step; /* (which was the next but one) */
    rest -= step * by;
    switch (rounding) {
    case FLOOR: return k - ONES(lanes_above(zero, rest));
    case TRUNC:
        return k + ONES(lanes_above(zero, sum) & lanes_above(rest, zero)) -
            ONES(lanes_above(sum, zero) & lanes_above(zero, rest));
    case HALF_AWAY:
        return k + ONES(lanes_above(sum, zero) & lanes_equal(rest * 2, by)) -
            ONES(lanes_above(zero, sum) & lanes_equal(rest * 2, -by));
    }
    half = k * 0.5;
    odd = lanes_differ((half + MAGIC) - MAGIC, half);
    return k + ONES(odd & lanes_equal(rest * 2, by)) - ONES(odd & lanes_equal(rest * 2, -by));
}
INLINE vec_f64 integers_at(const sums_t *s, const divisors_t *d, ptrdiff_t i, ptrdiff_t n) {
    vec_f64 sum = (vec_f64)load_some(s->high + i, n - i), by = d->divisor - (vec_f64){0};
    vec_f64 reciprocal = d->reciprocal - (vec_f64){0};
    if (d->divisor < 0) sum = -sum, by = -by, reciprocal = -reciprocal;
    if (d->counts) {
        by *= (vec_f64)load_some(d->counts + i, n - i);
        reciprocal *= (vec_f64)load_some(d->reciprocals + i, n - i);
    }
    return round_quotients(sum, by, reciprocal, d->rounding);
}
typedef VECTOR(int32_t, VEC_BYTES / 2) wide_i32s;
#define DEFINE_DIVIDE_INTEGER(name, T, AS)                                                        \
    static void divide_##name(T *y, const sums_t *s, const divisors_t *d, ptrdiff_t n) {          \
        for (ptrdiff_t i = 0; i < n; i += WIDE) {                                                 \
            ptrdiff_t count = n - i < WIDE ? n - i : WIDE;                                        \
            vec_f64 k = integers_at(s, d, i, n);                                                  \
            AS(T)                                                                                 \
        }                                                                                         \
    }
#define AS_NARROW(T)                                                                              \
    VECTOR(T, VEC_BYTES / 8 * sizeof(T)) results =                                                \
        __builtin_convertvector(__builtin_convertvector(k, wide_i32s), __typeof__(results));      \
    if (count == WIDE)                                                                            \
        memcpy(y + i, &results, sizeof results);                                                  \
    else                                                                                          \
        for (ptrdiff_t j = 0; j < count; j++) y[i + j] = results[j];
#define AS_WORDS(T)                                                                               \
    for (ptrdiff_t j = 0; j < count; j++) y[i + j] = (T)(int64_t)k[j];
/* (saturates: no plan refuses a negative divisor) */
#define AS_UNSIGNED(T)                                                                            \
    for (ptrdiff_t j = 0; j < count; j++) y[i + j] = k[j] > 0 ? (T)k[j] : 0;
#define AS_BOOL(T)                                                                                \
    for (ptrdiff_t j = 0; j < count; j++) y[i + j].bits = k[j] != 0;
DEFINE_DIVIDE_INTEGER(i8, int8_t, AS_NARROW) DEFINE_DIVIDE_INTEGER(u8, uint8_t, AS_NARROW)
DEFINE_DIVIDE_INTEGER(i16, int16_t, AS_NARROW) DEFINE_DIVIDE_INTEGER(u16, uint16_t, AS_NARROW)
DEFINE_DIVIDE_INTEGER(i32, int32_t, AS_WORDS) DEFINE_DIVIDE_INTEGER(u32, uint32_t, AS_WORDS)
DEFINE_DIVIDE_INTEGER(i64, int64_t, AS_WORDS) DEFINE_DIVIDE_INTEGER(u64, uint64_t, AS_UNSIGNED)
DEFINE_DIVIDE_INTEGER(bool, bool_t_, AS_BOOL)

/* ---- integers whose sums exceed a double: of words of 16 bits, the lowest first ---- */

static void divide_words(void *y, const double *const *words, int count, const divisors_t *d,
                          ptrdiff_t n, int is_signed, int size) {
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t low = 0, by, quotient = 0, rest = 0;
        int64_t high = 0;
        double divisor = divisor_at(d, i);
        int negative, more, over = 0;
        for (int j = 0; j < count; j++) {
            int64_t digit = (int64_t)words[j][i];
            uint64_t shifted = (uint64_t)digit << (16 * j);
            high += j ? digit >> (64 - 16 * j) : (digit < 0 ? -1 : 0);
            low += shifted;
            high += low < shifted;
        }
        negative = high < 0;
        if (negative) low = -low, high = -high - (low != 0);
        if (divisor < 0) divisor = -divisor, negative ^= (high | (int64_t)low) != 0;
        by = (uint64_t)divisor;
        if (!by) low = high = 0, by = 1; /* (an empty window) */
        for (int bit = 127; bit >= 0; bit--) { /* (a division of 128 bits, where there is none) */
            rest = rest << 1 | ((bit < 64 ? low >> bit : (uint64_t)high >> (bit - 64)) & 1);
            over |= (int)(quotient >> 63);
            quotient <<= 1;
            if (rest >= by) rest -= by, quotient |= 1;
        }
        if (d->rounding == FLOOR)
            more = negative && rest;
        else if (d->rounding == TRUNC)
            more = 0;
        else /* (rest < by < 2**53) */
            more = rest * 2 > by || (rest * 2 == by && (d->rounding == HALF_AWAY || quotient & 1));
        quotient += (uint64_t)more;
        over |= more && !quotient;
        if (is_signed) {
            uint64_t most = negative ? 1ULL << 63 : ~0ULL >> 1;
            if (over || quotient > most) quotient = most;
            if (negative) quotient = -quotient;
        } else if (negative)
            quotient = 0;
        else if (over)
            quotient = ~0ULL;
        if (size == 8)
            memcpy((char *)y + 8 * i, &quotient, 8);
        else { /* (it fits, so its low bits are the result) */
            uint32_t word = (uint32_t)quotient;
            uint16_t half = (uint16_t)quotient;
            uint8_t byte = (uint8_t)quotient;
            memcpy((char *)y + size * i,
                   size == 4   ? (void *)&word
                   : size == 2 ? (void *)&half
                               : (void *)&byte,
                   (size_t)size);
        }
    }
}

#endif
