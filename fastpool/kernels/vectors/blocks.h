/* Blocks: reduce the elements of blocks that share no element.
 *
 * Small blocks are reduced in columns: up to LANES blocks at a time, one row of LANES elements per
 * tap. A larger block is reduced as a list of the keys that are there. Elements become keys, which
 * are signed integers of their width with the same order (keys.h). `mark` tells which of them are
 * missing. block_keys.h has what depends on the width of a key.
 *
 * All sums of integers are exact: high * 2**32 + low. */
#ifndef FASTPOOL_BLOCKS_H
#define FASTPOOL_BLOCKS_H

#include "loops.h"
#include "convert.h"
#include "folds.h"
#include "quick_quotients.h"

enum { LANES = 64, MOST_TAPS = 64 }; /* MOST_TAPS: of blocks in columns; fits int8_t */
enum { MOST_SLOT_BITS = 11 }; /* of a table of keys, which stays in the first-level cache */

/* Lanes share nothing. Compilers that ask at run time whether they do, or that unroll such loops,
 * make three times the code. */
#if defined(__GNUC__) && !defined(__clang__)
#define ROLLED _Pragma("GCC unroll 1")
#define EACH_LANE ROLLED _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)
#else
#define ROLLED
#define EACH_LANE for (int i = 0; i < LANES; i++)
#endif

/* In the order of FUNCTIONS (fastpool/_planning/blocks.py). */
enum block_function { B_MAX, B_MIN, B_MODE, B_MEDIAN, B_MEAN, B_SUM, B_VAR, B_STD, B_COUNT };

typedef struct {
    int64_t code, function;
    int64_t result;      /* code of the type of results; float medians, var and std: F64 or F32 */
    int64_t rounding;    /* of quotients that become integers */
    int64_t ignores_nan; /* is a NaN missing? */
    int64_t has_nodata;  /* is an element missing that equals `nodata`? */
    int64_t nodata;      /* in the lowest bytes */
    int64_t missing;     /* what stands for a missing result, in the lowest bytes */
    int64_t need;        /* elements without which a result is missing */
    int64_t ddof;
    int64_t masked;      /* does the caller say which elements are missing? */
} block_rule_t;

/* A rule as constants of one width. */
typedef struct {
    int64_t flip, fold, infinity, nodata[2], has_nodata, ignores_nan, inverted, filler;
    int all_there; /* integers none of which is missing */
} key_rule_t;

/* What a column or a list comes to: sums or other values, and how many elements they are of. */
typedef struct {
    int64_t high[LANES], low[LANES], by[LANES], count[LANES];
    double x[LANES];
    uint64_t bits[LANES]; /* of results */
    uint64_t row[LANES];  /* results, as elements of their type */
} block_lanes_t;

/* Lists of different labels, one after the other, and how many elements have each. */
typedef struct {
    int64_t *keys;
    int32_t *counts;
    ptrdiff_t kept;  /* labels */
    ptrdiff_t *ends; /* of each list; before the first one is 0 */
    ptrdiff_t lists;
    uint32_t *slots; /* a table of the labels of one list */
    int stopped;     /* are there no lists of what follows? */
} label_lists_t;

/* Elements in a row, of which some are missing. */
typedef struct {
    int64_t code, result; /* of the elements and of those that they become: integers, or floats */
    /* Of results. zeros: both zeros are missing. Magnitudes beyond `last` are missing. Those beyond
     * `most` are wild, and so are elements that equal the filler. */
    int64_t has_nodata, nodata, zeros, filler, most, last;
    int wild; /* is one that is there? */
    const char *x;
    const uint8_t *where; /* or NULL */
    char *to;
    ptrdiff_t n;
} fill_t;
enum { FILLED = 1024 }; /* at a time */

/* A row of outputs that are folded: blocks of `width` neighbours in each of `count` rows. */
typedef struct {
    char *to;
    int64_t *counts; /* or NULL */
    const char *taps[MOST_TAPS];
    const uint8_t *where[MOST_TAPS]; /* if the rule is masked */
    int count, width;
    int need;    /* of the rule, but it fits int8_t */
    ptrdiff_t n; /* outputs, of a vector at least */
    const block_rule_t *rule;
} block_folds_t;

static int is_float_code(int code) { return code <= F64; }
static int is_unsigned_code(int code) { return code >= U8 && code <= U64; }

/* ---- elements of stride `step` as a row ---- */

#define DEFINE_GATHER(L)                                                                          \
    static NOINLINE void gather_##L(void *to, const char *from, ptrdiff_t step, ptrdiff_t n) {    \
        uint##L##_t *row = (uint##L##_t *)to;                                                     \
        if (step == L / 8)                                                                        \
            memcpy(row, from, (size_t)n * (L / 8));                                               \
        else                                                                                      \
            for (ptrdiff_t i = 0; i < n; i++) row[i] = *(const uint##L##_t *)(from + i * step);   \
    }                                                                                             \
    static NOINLINE void gather_lanes_##L(void *to, const char *from, const ptrdiff_t *places,    \
                                          ptrdiff_t n) {                                          \
        uint##L##_t *row = (uint##L##_t *)to;                                                     \
        for (ptrdiff_t i = 0; i < n; i++) row[i] = *(const uint##L##_t *)(from + places[i]);      \
    }                                                                                             \
    /* Each row of `width` rows takes every width-th of n * width neighbours. */                  \
    static NOINLINE void split_##L(void *rows, const char *from, ptrdiff_t width, ptrdiff_t n) {  \
        const uint##L##_t *x = (const uint##L##_t *)from;                                         \
        uint##L##_t *row = (uint##L##_t *)rows;                                                   \
        ptrdiff_t i = 0, lanes = VEC_BYTES / (L / 8);                                             \
        if (width == 2)                                                                           \
            for (; i + lanes <= n; i += lanes) {                                                  \
                vec_t a = vec_load(x + 2 * i), b = vec_load(x + 2 * i + lanes);                   \
                vec_store(row + i, vec_concat_even(a, b, x));                                     \
                vec_store(row + LANES + i, vec_concat_odd(a, b, x));                              \
            }                                                                                     \
        if (width == 4)                                                                           \
            for (; i + lanes <= n; i += lanes) {                                                  \
                vec_t a = vec_load(x + 4 * i), b = vec_load(x + 4 * i + lanes);                   \
                vec_t c = vec_load(x + 4 * i + 2 * lanes), d = vec_load(x + 4 * i + 3 * lanes);   \
                vec_t e = vec_concat_even(a, b, x), f = vec_concat_even(c, d, x);                 \
                vec_t g = vec_concat_odd(a, b, x), h = vec_concat_odd(c, d, x);                   \
                vec_store(row + i, vec_concat_even(e, f, x));                                     \
                vec_store(row + LANES + i, vec_concat_even(g, h, x));                             \
                vec_store(row + 2 * LANES + i, vec_concat_odd(e, f, x));                          \
                vec_store(row + 3 * LANES + i, vec_concat_odd(g, h, x));                          \
            }                                                                                     \
        for (; i < n; i++)                                                                        \
            for (ptrdiff_t t = 0; t < width; t++) row[t * LANES + i] = x[i * width + t];          \
    }
DEFINE_GATHER(8) DEFINE_GATHER(16) DEFINE_GATHER(32) DEFINE_GATHER(64)

/* ---- quotients of exact sums ---- */

/* Keep 0 <= low < 2**32. */
INLINE void carry(int64_t *high, int64_t *low) {
    *high += (int64_t)((uint64_t)*low >> 32);
    *low &= 0xffffffff;
}

/* Return (high * 2**32 + low) / by, rounded to an integer of `result`, which saturates if it has 64
 * bits. */
static uint64_t integer_quotient(int64_t high, int64_t low, int64_t by, int result, int rounding) {
    const int64_t negative = high < 0;
    int64_t first = high / by, rest = high % by, up;
    uint64_t second = 0;
    if (rest < 0) first--, rest += by;
    if (by >> 31 == 0) {
        uint64_t dividend = (uint64_t)rest << 32 | (uint64_t)low;
        second = dividend / (uint64_t)by;
        rest = (int64_t)(dividend % (uint64_t)by);
    } else
        for (int bit = 31; bit >= 0; bit--) { /* (rest < by < 2**62) */
            rest = rest << 1 | (low >> bit & 1);
            second = second << 1 | (rest >= by);
            if (rest >= by) rest -= by;
        }
    up = rounding == FLOOR ? 0 : rounding == TRUNC ? negative && rest : 2 * rest > by;
    if (2 * rest == by && rounding <= HALF_AWAY)
        up = rounding == HALF_EVEN ? (int64_t)(second & 1) : !negative;
    second += (uint64_t)up;
    first += (int64_t)(second >> 32); /* (a carry) */
    second &= 0xffffffff;
    if (result == I64 && first > INT32_MAX) return INT64_MAX;
    if (result == I64 && first < INT32_MIN) return (uint64_t)INT64_MIN;
    if (result == U64 && first > UINT32_MAX) return UINT64_MAX;
    if (result == U64 && first < 0) return 0;
    return (uint64_t)first << 32 | second;
}

/* The same quotient as a float or double, rounded once. */
static uint64_t float_quotient(int64_t high, int64_t low, int64_t by, int result) {
    const double upper = (double)(high >> 32) * 0x1p64;
    const double middle = (double)(high & 0xffffffff) * 0x1p32;
    if (result == F32)
        return f32_bits((float)settle(upper, middle, (double)low, (double)by, 24, -126));
    return f64_bits(settle(upper, middle, (double)low, (double)by, 53, -1022));
}

/* Divide sums of at most MOST_TAPS integers of at most 32 bits, in x, by `by`: exact in double. */
static VECTORISED void small_quotients(block_lanes_t *to, int rounding) {
    const double integers = 0x1.8p52;
    const double even = rounding == HALF_EVEN, away = rounding == HALF_AWAY;
    const double trunc = rounding == TRUNC;
    EACH_LANE {
        double sum = to->x[i], by = (double)(int32_t)to->by[i], exact = sum / by;
        double q = (exact + integers) - integers, up, half;
        q -= q > exact ? 1 : 0;
        double rest = 2 * (sum - q * by), tie = rest == by ? 1 : 0, below = sum < 0 ? 1 : 0;
        half = q * 0.5;
        double odd = (half + integers) - integers == half ? 0 : 1;
        up = rest > by ? even + away : tie * (even * odd + away * (1 - below));
        up += rest > 0 ? trunc * below : 0;
        q += up;
        double shifted = q + integers;
        to->bits[i] = f64_bits(shifted) - f64_bits(integers);
        to->x[i] = exact;
    }
}

/* Set the results of sums. If `small`, these are in x, and else in high and low. */
static void set_quotients(block_lanes_t *to, const block_rule_t *rule, int n, int small) {
    const int result = (int)rule->result;
    for (int i = 0; i < n; i++)
        if (to->by[i] < 1) to->by[i] = 1; /* (of nothing) */
    if (small) {
        for (int i = n; i < LANES; i++) to->x[i] = 0, to->by[i] = 1;
        small_quotients(to, (int)rule->rounding);
        if (result == U64)
            for (int i = 0; i < n; i++) to->bits[i] = to->x[i] < 0 ? 0 : to->bits[i];
        if (result == F32)
            for (int i = 0; i < n; i++) to->bits[i] = f32_bits((float)to->x[i]);
        if (result == F64)
            for (int i = 0; i < n; i++) to->bits[i] = f64_bits(to->x[i]);
    } else
        for (int i = 0; i < n; i++) {
            carry(&to->high[i], &to->low[i]);
            to->bits[i] =
                is_float_code(result)
                    ? float_quotient(to->high[i], to->low[i], to->by[i], result)
                    : integer_quotient(to->high[i], to->low[i], to->by[i], result,
                                       (int)rule->rounding);
        }
}

/* ---- variances ---- */

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

#define BY_BYTES(bytes, name, ...)                                                                \
    ((bytes) == 1   ? name##_8(__VA_ARGS__)                                                       \
     : (bytes) == 2 ? name##_16(__VA_ARGS__)                                                      \
     : (bytes) == 4 ? name##_32(__VA_ARGS__)                                                      \
                    : name##_64(__VA_ARGS__))

/* ---- results ---- */

#define DEFINE_RESULTS(L)                                                                         \
    static VECTORISED void choose_results_##L(block_lanes_t *restrict to, int64_t need,           \
                                              uint64_t missing) {                                 \
        uint##L##_t *restrict row = (uint##L##_t *)to->row;                                       \
        EACH_LANE to->bits[i] = to->count[i] < need ? missing : to->bits[i];                      \
        EACH_LANE row[i] = (uint##L##_t)to->bits[i];                                              \
    }                                                                                             \
    static NOINLINE void store_row_##L(char *y, ptrdiff_t step, const ptrdiff_t *places,          \
                                       ptrdiff_t n, const void *results) {                        \
        const uint##L##_t *row = (const uint##L##_t *)results;                                    \
        if (places)                                                                               \
            for (ptrdiff_t i = 0; i < n; i++) *(uint##L##_t *)(y + places[i]) = row[i];           \
        else if (step == L / 8)                                                                   \
            memcpy(y, row, (size_t)n * (L / 8));                                                  \
        else                                                                                      \
            for (ptrdiff_t i = 0; i < n; i++) *(uint##L##_t *)(y + i * step) = row[i];            \
    }
DEFINE_RESULTS(8) DEFINE_RESULTS(16) DEFINE_RESULTS(32) DEFINE_RESULTS(64)

/* Make elements of the bits of results, or of what stands for those that are missing. */
static void choose_results(block_lanes_t *to, const block_rule_t *rule) {
    BY_BYTES(dtype_bytes[rule->result], choose_results, to, rule->need, (uint64_t)rule->missing);
}

/* Store the first n results of a row, `step` bytes apart, or at `places` unless that is NULL. */
#define store_row(y, step, places, n, row, bytes)                                                 \
    BY_BYTES(bytes, store_row, y, step, places, n, row)

/* ---- rows of outputs that are folded: block_folds.h ---- */

/* The outputs from i on, a vector at a time. The last one may overlap that before it. */
#define EACH_VECTOR(lanes)                                                                        \
    for (ptrdiff_t i = 0, last = a->n - lanes, more = 1; more;                                    \
         more = i != last, i = i + lanes < last ? i + lanes : last)

/* Store sums of integers and their numbers, `step` apart. */
static NOINLINE void store_folded(const block_folds_t *a, const vec_i32 *both, ptrdiff_t at,
                                  ptrdiff_t step) {
    const vec_i32 sums = both[0], kept = both[1];
    for (int k = 0; k < VEC_BYTES / 4; k++, at += step) {
        if (a->counts) a->counts[at] = kept[k];
        if (a->rule->function == B_SUM)
            ((int64_t *)a->to)[at] = kept[k] < a->need ? a->rule->missing : sums[k];
    }
}
static NOINLINE void round_folded(vec_f32 *q, int rounding) { *q = round_quick_f32(*q, rounding); }

/* Return the means, in their lowest bits, of sums of integers to which `bias` was added. */
INLINE vec_i32 fold_results(vec_u32 sums, vec_u32 numbers, const block_folds_t *a, int bias,
                            ptrdiff_t at, ptrdiff_t step) {
    vec_i32 sum = (vec_i32)sums, kept = (vec_i32)numbers;
    if (bias) sum -= kept * bias;
    if (a->counts || a->rule->function == B_SUM) {
        const vec_i32 both[2] = {sum, kept};
        store_folded(a, both, at, step);
    }
    vec_f32 q = __builtin_convertvector(sum, vec_f32) / __builtin_convertvector(kept, vec_f32);
    if (a->rule->rounding == HALF_EVEN) {
        q += 0x1.8p23f; /* (its lowest bit is 1) */
    } else {
        vec_f32 copy = q; /* (in memory) */
        round_folded(&copy, (int)a->rule->rounding);
        q = copy;
    }
    return SELECT(kept < a->need, (vec_i32){0} + (int32_t)a->rule->missing, (vec_i32)q);
}

/* ---- one set of functions per width ---- */

#define JOINED_(a, b) a##_##b
#define JOINED(a, b) JOINED_(a, b)
#define OF_KEY(name) JOINED(name, KEY_BITS)
#define KEY_BITS 8
#define KEY int8_t
#include "block_keys.h"
#define KEY_BITS 16
#define KEY int16_t
#include "block_keys.h"
#define KEY_BITS 32
#define KEY int32_t
#include "block_keys.h"
#define KEY_BITS 64
#define KEY int64_t
#include "block_keys.h"

#define gather(to, from, step, n, bytes) BY_BYTES(bytes, gather, to, from, step, n)
#define gather_lanes(to, from, places, n, bytes) BY_BYTES(bytes, gather_lanes, to, from, places, n)
#define split(rows, from, width, n, bytes) BY_BYTES(bytes, split, rows, from, width, n)

/* Reduce n columns of `taps` rows of elements, which are overwritten. `there` tells which elements
 * the caller wants, and is overwritten. `work` has 8 * LANES * taps bytes. */
static void reduce_columns(block_lanes_t *to, void *rows, uint8_t *there, void *work, int taps,
                           int n, const block_rule_t *rule) {
    BY_BYTES(dtype_bytes[rule->code], columns, to, rows, (uint8_t(*)[LANES])there, work, taps, n,
             rule);
}

/* Append the elements of a row that are there to a list of keys. Return how many. */
static ptrdiff_t append_keys(void *list, void *row, uint8_t *there, int n,
                             const block_rule_t *rule) {
    return BY_BYTES(dtype_bytes[rule->code], append, list, row, there, n, rule);
}

/* Reduce a list of n keys, which is overwritten, as lane 0. `work` has 8 * n bytes. */
static void reduce_list(block_lanes_t *to, void *list, void *work, ptrdiff_t n,
                        const block_rule_t *rule) {
    to->count[0] = n;
    BY_BYTES(dtype_bytes[rule->code], list, to, list, work, n, rule);
}

/* Reduce a row of outputs. Their function is B_MAX, B_MIN, B_MEAN or B_SUM. */
static void fold_blocks(const block_folds_t *a) {
    if (a->rule->function == B_MAX || a->rule->function == B_MIN)
        BY_BYTES(dtype_bytes[a->rule->code], fold_greatest, a);
    else
        BY_BYTES(dtype_bytes[a->rule->code], fold_sums, a);
}

/* Append the lists of n columns that reduce_columns has sorted. */
static void list_columns(label_lists_t *to, const void *rows, const block_lanes_t *lanes, int n,
                         const block_rule_t *rule) {
    BY_BYTES(dtype_bytes[rule->code], list_columns, to, rows, lanes->count, n);
}

/* Append the sum of the lists at some places. Set the mode and the count of its elements. */
static NOINLINE void merge_lists(label_lists_t *to, block_lanes_t *lanes, int lane,
                                 const label_lists_t *from, const ptrdiff_t *places, ptrdiff_t n,
                                 const block_rule_t *rule) {
    ptrdiff_t most = 0, total = 0, labels = 0;
    int64_t *restrict keys = to->keys + to->kept, winner = 0;
    int32_t *restrict counts = to->counts + to->kept;
    uint32_t kept = 0, *restrict slots = to->slots;
    const ptrdiff_t *ends = from->ends;
    /* (An address as a seed: nobody can choose labels that all want one slot.) */
    const uint64_t seed = (uint64_t)(uintptr_t)slots * 0x9e3779b97f4a7c15 | 1;
    int bits = 4;
    for (ptrdiff_t i = 0; i < n; i++) labels += ends[places[i]] - ends[places[i] - 1];
    while ((ptrdiff_t)1 << bits < 2 * labels) bits++;
    memset(slots, 0, sizeof(*slots) << bits);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t k = ends[places[i] - 1]; k < ends[places[i]]; k++) {
            const int64_t key = from->keys[k];
            const uint64_t mixed = ((uint64_t)key ^ (uint64_t)key >> 32) * seed;
            size_t at = (size_t)((mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15 >> (64 - bits));
            while (slots[at] && keys[slots[at] - 1] != key)
                at = (at + 1) & (((size_t)1 << bits) - 1);
            const uint32_t is_new = !slots[at], place = slots[at] - 1 + (-is_new & (kept + 1));
            slots[at] = place + 1; /* (no branches: they would be mispredicted) */
            keys[kept] = key, counts[kept] = 0;
            counts[place] += from->counts[k];
            kept += is_new;
        }
    for (uint32_t k = 0; k < kept; k++) {
        total += counts[k];
        if (counts[k] > most || (counts[k] == most && keys[k] < winner))
            most = counts[k], winner = keys[k];
    }
    if (is_unsigned_code((int)rule->code))
        winner ^= (int64_t)((uint64_t)1 << (dtype_bytes[rule->code] * 8 - 1));
    lanes->bits[lane] = (uint64_t)winner;
    lanes->count[lane] = total;
    to->kept += kept;
    to->ends[to->lists++] = to->kept;
}

/* ---- elements, with a filler where one is missing ---- */

static void fill_missing(fill_t *f, ptrdiff_t at, ptrdiff_t n) {
    const ptrdiff_t size = dtype_bytes[f->result], bytes = dtype_bytes[f->code];
    const convert_t convert = f->code == f->result ? NULL
                                                   : to_floats_of((int)f->code);
    uint8_t there[FILLED];
    double row[FILLED], out[FILLED];
    int wild = 0;
    memset(there, 1, FILLED);
    for (ptrdiff_t m; n > 0; at += m, n -= m) {
        const char *x = f->x + at * bytes;
        char *to = f->to + at * size;
        m = n < FILLED ? n : FILLED;
        for (ptrdiff_t k = 0; k < m * bytes; k += 64) __builtin_prefetch(x + m * bytes + k);
        if (m < FILLED) memset(there + m, 0, (size_t)(FILLED - m));
        if (f->where) memcpy(there, f->where + at, (size_t)m);
        if (convert)
            convert(row, x, m, 0);
        else if (m < FILLED)
            memcpy(row, x, (size_t)(m * bytes));
        wild |= BY_BYTES(size, fill, m < FILLED ? (char *)out : to,
                         convert || m < FILLED ? (const char *)row : x, there, f);
        if (m < FILLED) memcpy(to, out, (size_t)(m * size));
    }
    if (wild) __atomic_store_n(&f->wild, 1, __ATOMIC_RELAXED);
}

#endif
