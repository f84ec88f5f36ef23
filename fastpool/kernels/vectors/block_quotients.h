/* Quotients of exact sums, high * 2**32 + low, as integers and floats that are rounded once. */
#ifndef FASTPOOL_BLOCK_QUOTIENTS_H
#define FASTPOOL_BLOCK_QUOTIENTS_H

#include "block_types.h"
#include "quick_quotients.h"

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

#endif
