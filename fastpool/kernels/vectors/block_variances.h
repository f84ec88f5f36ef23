/* Variances and standard deviations of columns and lists. */
#ifndef FASTPOOL_BLOCK_VARIANCES_H
#define FASTPOOL_BLOCK_VARIANCES_H

#include "block_types.h"
#include "quick_quotients.h"

/* 2**e of the largest magnitude, as a factor that keeps squares in range. */
INLINE double scale_of(double most) {
    int64_t e = (int64_t)(f64_bits(most) >> 52 & 0x7ff);
    e = e < 2 ? 2 : e > 2044 ? 2044 : e;
    return f64_of_bits((uint64_t)(2046 - e) << 52);
}
INLINE void set_variance(uint64_t *bits, double variance, double scale, const block_rule_t *rule) {
    if (variance < 0) variance = 0;
    variance = rule->function == B_STD ? sqrt(variance) / scale : variance / scale / scale;
    *bits = rule->result == F32 ? f32_bits((float)variance) : f64_bits(variance);
}

/* Bytes as wide as the doubles that they choose from: a loop over both is long code. */
static VECTORISED void widen(int64_t *to, const uint8_t *from) { EACH_LANE to[i] = from[i]; }

/* Set the variances of columns. Exact numbers, integers of at most 17 bits, need no mean. Those of
 * 64 bits, `wide`, need a scale for their squares, and a comparison of equal ones, whose sum may be
 * rounded. `all`: is none missing? */
static VECTORISED void column_variances(block_lanes_t *to, double (*x)[LANES],
                                        const uint8_t (*there)[LANES], int taps, int all,
                                        int exact, int wide, double ddof) {
    double most[LANES], mean[LANES], sum[LANES], squares[LANES], part[LANES], low[LANES];
    int64_t taken[LANES];
    EACH_LANE {
        most[i] = sum[i] = part[i] = 0;
        low[i] = INFINITY, mean[i] = -INFINITY;
    }
    for (int t = 0; wide && t < taps; t++) {
        if (!all || !t) widen(taken, there[t]);
        EACH_LANE {
            double v = x[t][i], size = v < 0 ? -v : v;
            low[i] = taken[i] && v < low[i] ? v : low[i];
            mean[i] = taken[i] && v > mean[i] ? v : mean[i];
            most[i] = taken[i] && size > most[i] ? size : most[i];
        }
    }
    EACH_LANE {
        to->x[i] = wide ? scale_of(most[i]) : 1;
        low[i] = mean[i] == low[i]; /* (all equal) */
    }
    for (int t = 0; !exact && t < taps; t++) {
        if (!all || !t) widen(taken, there[t]);
        if (all && !wide) EACH_LANE part[i] += x[t][i];
        else EACH_LANE {
            x[t][i] = taken[i] ? x[t][i] * to->x[i] : 0;
            part[i] += x[t][i];
        }
        if (t % 8 == 7) EACH_LANE sum[i] += part[i], part[i] = 0;
    }
    EACH_LANE {
        double n = (double)(int32_t)to->count[i];
        mean[i] = exact ? 0 : (sum[i] + part[i]) / n;
        sum[i] = squares[i] = part[i] = most[i] = 0;
    }
    for (int t = 0; t < taps; t++) {
        if (!all || !t) widen(taken, there[t]);
        EACH_LANE {
            double d = taken[i] ? x[t][i] - mean[i] : 0;
            part[i] += d;
            most[i] += d * d;
        }
        if (t % 8 == 7) EACH_LANE {
            sum[i] += part[i], squares[i] += most[i];
            part[i] = most[i] = 0;
        }
    }
    EACH_LANE {
        double n = (double)(int32_t)to->count[i], by = n - ddof, variance;
        double s = sum[i] + part[i], q = squares[i] + most[i];
        variance = exact ? (n * q - s * s) / (n * by) : (q - s * s / n) / by;
        variance = low[i] != 0 && !(variance != variance) ? 0 : variance;
        part[i] = by > 0 ? variance : NAN;
    }
    EACH_LANE sum[i] = to->x[i], to->x[i] = part[i], part[i] = sum[i];
    memcpy(to->bits, part, sizeof(part)); /* the scales */
}

/* Add x to an unevaluated sum of two doubles. */
INLINE void add_exactly(double *high, double *low, double x) {
    double error;
    two_sum(*high, x, high, &error);
    *low += error;
}

/* The parts of a variance in twice the digits of double: for results in double of elements that
 * have fewer. Quotients are two doubles too. */
INLINE void divide(double *high, double *low, double n) {
    double quotient = (*high + *low) / n, product = quotient * n;
    *low = ((*high - product) - product_error(quotient, n, product) + *low) / n;
    *high = quotient;
}
INLINE void add_square(double *high, double *low, double x, double mean, double rest) {
    double d, error, square;
    two_sum(x, -mean, &d, &error);
    square = d * d;
    error -= rest;
    *low += product_error(d, d, square) + (2 * d + error) * error;
    add_exactly(high, low, square);
}
static int is_precise(const block_rule_t *rule) {
    return rule->result == F64 && rule->code != F64 && dtype_bytes[rule->code] < 8;
}

/* `column_variances` of that precision. */
static VECTORISED void precise_variances(block_lanes_t *to, double (*x)[LANES],
                                         const uint8_t (*there)[LANES], int taps, double ddof) {
    double mean[LANES] = {0}, rest[LANES] = {0}, high[LANES] = {0}, low[LANES] = {0};
    int64_t taken[LANES];
    for (int t = 0; t < taps; t++) {
        widen(taken, there[t]);
        EACH_LANE add_exactly(&mean[i], &rest[i], taken[i] ? x[t][i] : 0);
    }
    EACH_LANE divide(&mean[i], &rest[i], (double)(int32_t)to->count[i]);
    for (int t = 0; t < taps; t++) {
        widen(taken, there[t]);
        EACH_LANE add_square(&high[i], &low[i], taken[i] ? x[t][i] : mean[i],
                             mean[i], taken[i] ? rest[i] : 0);
    }
    EACH_LANE {
        double by = (double)(int32_t)to->count[i] - ddof;
        divide(&high[i], &low[i], by);
        to->x[i] = by > 0 ? high[i] + low[i] : NAN;
        to->bits[i] = f64_bits(1);
    }
}

/* Return the sum of (x - mean) ** power, with partial sums of halves. Its terms are at x. */
static double sum_of_powers(const double *x, ptrdiff_t n, double mean, int power) {
    double lanes[8] = {0};
    ptrdiff_t i = 0;
    if (n > 512) {
        ptrdiff_t half = n / 16 * 8;
        return sum_of_powers(x, half, mean, power) + sum_of_powers(x + half, n - half, mean, power);
    }
    for (; i + 8 <= n; i += 8)
        for (int lane = 0; lane < 8; lane++) {
            double d = x[i + lane] - mean;
            lanes[lane] += power == 2 ? d * d : d;
        }
    for (; i < n; i++) lanes[i % 8] += power == 2 ? (x[i] - mean) * (x[i] - mean) : x[i] - mean;
    for (int width = 4; width; width /= 2)
        for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
    return lanes[0];
}

/* Return the variance of a list, which is overwritten; set the scale. */
static double list_variance(double *x, ptrdiff_t n, double ddof, int precise, double *scale) {
    double most = 0, low = INFINITY, high = -INFINITY, mean, s, q, variance;
    if (precise) {
        double two[2] = {0}, sum[2] = {0};
        for (ptrdiff_t i = 0; i < n; i++) add_exactly(&two[0], &two[1], x[i]);
        divide(&two[0], &two[1], (double)n);
        for (ptrdiff_t i = 0; i < n; i++) add_square(&sum[0], &sum[1], x[i], two[0], two[1]);
        divide(&sum[0], &sum[1], (double)n - ddof);
        return sum[0] + sum[1];
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        most = absolute(x[i]) > most ? absolute(x[i]) : most;
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *scale = scale_of(most);
    for (ptrdiff_t i = 0; i < n; i++) x[i] *= *scale;
    mean = sum_of_powers(x, n, 0, 1) / (double)n;
    s = sum_of_powers(x, n, mean, 1);
    q = sum_of_powers(x, n, mean, 2);
    variance = (q - s * s / (double)n) / ((double)n - ddof);
    return low == high && variance == variance ? 0 : variance;
}

typedef struct {
    uint64_t high, low;
} twice_t; /* an integer of 128 bits */

INLINE twice_t product_of(uint64_t a, uint64_t b) {
    uint64_t al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
    uint64_t low = al * bl, one = ah * bl + (low >> 32), two = al * bh + (one & 0xffffffff);
    return (twice_t){ah * bh + (one >> 32) + (two >> 32), two << 32 | (low & 0xffffffff)};
}
INLINE int is_below(twice_t a, twice_t b) {
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}
INLINE twice_t difference(twice_t a, twice_t b) {
    return (twice_t){a.high - b.high - (a.low < b.low), a.low - b.low};
}
INLINE twice_t doubled(twice_t a) { return (twice_t){a.high << 1 | a.low >> 63, a.low << 1}; }

/* Return the bits of (n * squares - sum ** 2) / (n * by), rounded once. Both are below 2**127. */
static uint64_t exact_variance(uint64_t n, uint64_t sum, twice_t squares, uint64_t by, int result) {
    twice_t rest = product_of(n, squares.low), divisor = product_of(n, by);
    uint64_t quotient = 0;
    int exponent = 0;
    double variance;
    rest.high += n * squares.high;
    rest = difference(rest, product_of(sum, sum));
    if (!rest.high && !rest.low) return 0;
    for (; is_below(rest, divisor); exponent--) rest = doubled(rest);
    while (!is_below(rest, doubled(divisor))) divisor = doubled(divisor), exponent++;
    for (int bit = 0; bit < 60; bit++) {
        int above = !is_below(rest, divisor);
        quotient = quotient << 1 | (uint64_t)above;
        if (above) rest = difference(rest, divisor);
        rest = doubled(rest);
    }
    quotient |= rest.high || rest.low; /* (what is left decides ties) */
    variance = result == F32 ? (double)(float)quotient : (double)quotient;
    variance *= power_of_two(exponent - 59);
    return result == F32 ? f32_bits((float)variance) : f64_bits(variance);
}

#endif
