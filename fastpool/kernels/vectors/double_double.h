/* Sums as two doubles, with a bound of what they miss; and their quotients, if the bound allows.
 *
 * An addition of doubles has an error that is a double. `high` is the rounded sum, `low` the sum of
 * these errors, and `missed` that of their magnitudes: what rounding loses in `low` is at most
 * 2**-53 of it for each addition. */
#ifndef FASTPOOL_DOUBLE_DOUBLE_H
#define FASTPOOL_DOUBLE_DOUBLE_H

#include "quick_quotients.h"
#include "small_windows.h"

typedef struct {
    vec_f64 high, low, missed;
} pair_t;

/* Is one of the last 26 bits of a number set? */
INLINE int has_low_bits(double x) { return (f64_bits(x) & ((1 << 26) - 1)) != 0; }

INLINE vec_f64 magnitude(vec_f64 v) { return (vec_f64)((vec_u64)v & ~(1ULL << 63)); }
INLINE void add_to_pair(pair_t *p, vec_t x) {
    vec_f64 v = (vec_f64)x, sum = p->high + v, rest = sum - p->high;
    vec_f64 error = (p->high - (sum - rest)) + (v - rest);
    p->high = sum, p->low += error, p->missed += magnitude(error);
}
INLINE void store_pair(double *high, double *low, double *missed, const pair_t *p) {
    vec_store(high, (vec_t)p->high);
    vec_store(low, (vec_t)p->low);
    vec_store(missed, (vec_t)p->missed);
}

/* Set the sums of small windows: n neighbouring outputs of `count` rows, as `pool_strips` does.
 * Whole vectors are written, in the order of rows if n is less than a vector. */
INLINE void pair_strips(int kind, const small_windows_t *w, ptrdiff_t first, ptrdiff_t n,
                        ptrdiff_t count, double *high, double *low, double *missed,
                        ptrdiff_t pitch) {
    const ptrdiff_t item = row_item(kind);
    const ptrdiff_t inner = w->lo - w->offset[0] - first;
    const ptrdiff_t outer = w->hi - w->offset[w->taps - 1] - first;
    for (ptrdiff_t i = 0; i < n; i += WIDE) {
        some_t some[MOST_SMALL_TAPS];
        int masked;
        if (i + WIDE > n && n >= WIDE) i = n - WIDE; /* (some are made again) */
        masked = MASKED_ROWS && !(i >= inner && i + WIDE <= outer);
        for (ptrdiff_t t = 0; masked && t < w->taps; t++)
            some[t] = some_of(kind, w->lo - first - i - w->offset[t],
                              w->hi - first - i - w->offset[t]);
        for (ptrdiff_t r = 0; r < count; r++) {
            pair_t sum = {{0}, {0}, {0}};
            for (ptrdiff_t k = 0; k < w->slabs * w->kernel; k++) {
                const ptrdiff_t row = k / w->kernel * w->slab + k % w->kernel * w->dilation;
                const char *p = w->rows[r * w->stride + row] + (first + i) * item;
                for (ptrdiff_t t = 0; t < w->taps; t++)
                    add_to_pair(&sum, masked
                                    ? load_some_of_row(kind, p + w->offset[t] * item, some[t])
                                    : load_row(kind, p + w->offset[t] * item));
            }
            store_pair(high + r * pitch + i, low + r * pitch + i, missed + r * pitch + i, &sum);
        }
    }
}
static void pair_small(int in_doubles, const small_windows_t *w, ptrdiff_t first, ptrdiff_t n,
                       ptrdiff_t count, double *high, double *low, double *missed,
                       ptrdiff_t pitch) {
    if (in_doubles)
        pair_strips(DOUBLES, w, first, n, count, high, low, missed, pitch);
    else
        pair_strips(FLOATS_IN_DOUBLE, w, first, n, count, high, low, missed, pitch);
}

/* Add the elements of two vectors of pairs to one pair. */
INLINE void add_lanes(double *high, double *low, double *missed, const pair_t *one,
                      const pair_t *two) {
    double h[2 * WIDE], l[2 * WIDE], m[2 * WIDE], error;
    store_pair(h, l, m, one);
    store_pair(h + WIDE, l + WIDE, m + WIDE, two);
    for (int half = WIDE; half > 0; half /= 2) /* (short chains of additions) */
        for (int i = 0; i < half; i++) {
            two_sum(h[i], h[i + half], &h[i], &error);
            l[i] += l[i + half] + error;
            m[i] += m[i + half] + absolute(error);
        }
    two_sum(*high, h[0], high, &error);
    *low += l[0] + error;
    *missed += m[0] + absolute(error);
}
/* Add n neighbouring elements to a sum. */
#define DEFINE_PAIR_RUN(name, T)                                                                  \
    static void pair_run_##name(double *high, double *low, double *missed, const T *p,            \
                                ptrdiff_t n) {                                                    \
        pair_t one = {{0}, {0}, {0}}, two = one;                                                  \
        ptrdiff_t i = 0;                                                                          \
        for (; i + 2 * WIDE <= n; i += 2 * WIDE) {                                                \
            add_to_pair(&one, wide_##name(p + i));                                                \
            add_to_pair(&two, wide_##name(p + i + WIDE));                                         \
        }                                                                                         \
        for (; i + WIDE <= n; i += WIDE) add_to_pair(&one, wide_##name(p + i));                   \
        if (i < n) add_to_pair(&two, wide_part_load(p + i, n - i));                               \
        add_lanes(high, low, missed, &one, &two);                                                 \
    }
DEFINE_PAIR_RUN(f32, float) DEFINE_PAIR_RUN(f64, double)
DEFINE_PAIR_RUN(f16, float16_t_) DEFINE_PAIR_RUN(bf16, bfloat16_t_)
#define pair_run(high, low, missed, p, n)                                                         \
    _Generic(*(p), float: pair_run_f32, double: pair_run_f64, float16_t_: pair_run_f16,           \
             bfloat16_t_: pair_run_bf16)(high, low, missed, p, n)

/* Set the sums of a vector of channels of one window's pixels, in every slab. */
#define DEFINE_PAIR_PIXELS(name, T)                                                               \
    static void pair_pixels_##name(double *high, double *low, double *missed, const T *p,         \
                                   const ptrdiff_t *offsets, ptrdiff_t slabs, ptrdiff_t rows,     \
                                   ptrdiff_t row, ptrdiff_t cols, ptrdiff_t col) {                \
        pair_t sum = {{0}, {0}, {0}};                                                             \
        for (ptrdiff_t s = 0; s < slabs; s++)                                                     \
            for (ptrdiff_t r = 0; r < rows; r++)                                                  \
                for (ptrdiff_t c = 0; c < cols; c++)                                              \
                    add_to_pair(&sum, wide_##name(p + offsets[s] + r * row + c * col));           \
        store_pair(high, low, missed, &sum);                                                      \
    }
DEFINE_PAIR_PIXELS(f32, float) DEFINE_PAIR_PIXELS(f64, double)
DEFINE_PAIR_PIXELS(f16, float16_t_) DEFINE_PAIR_PIXELS(bf16, bfloat16_t_)
#define pair_pixels(high, low, missed, p, ...)                                                    \
    _Generic(*(p), float: pair_pixels_f32, double: pair_pixels_f64,                               \
             float16_t_: pair_pixels_f16, bfloat16_t_: pair_pixels_bf16)(high, low, missed, p,    \
                                                                         __VA_ARGS__)

/* ---- quotients ---- */

typedef struct {
    const double *high, *low, *missed;
    ptrdiff_t n;
    const double *counts;  /* sum i is divided by counts[i] * divisor, or by divisor */
    double divisor, terms; /* terms: more than the additions of a sum */
    double exact;          /* below this nothing is lost: 2**53 units of the elements' last bits */
    int overflows;         /* may an infinity be the sum of numbers? */
    int halves;            /* is every divisor a power of two? */
} pairs_t;

INLINE vec_f64 lanes_chosen(lanes_t m, vec_f64 a, vec_f64 b) { /* a where they are set, else b */
    return (vec_f64)((vec_u64)lanes_kept(m, a) | (vec_u64)lanes_kept((lanes_t)~m, b));
}
/* WIDE quotients: between q + least and q + most, whatever was missed. */
typedef struct {
    vec_f64 q, least, most;
} bounds_t;
INLINE bounds_t bound_quotients(const pairs_t *s, ptrdiff_t i, vec_f64 by, vec_f64 reciprocal) {
    const ptrdiff_t n = s->n - i;
    const vec_f64 zero = {0};
    vec_f64 high = (vec_f64)load_some(s->high + i, n), low = (vec_f64)load_some(s->low + i, n);
    vec_f64 missed = (vec_f64)load_some(s->missed + i, n);
    vec_f64 sum = high + low, part = sum - high, rest = (high - (sum - part)) + (low - part);
    vec_f64 step, error, size = magnitude(sum);
    lanes_t inexact;
    bounds_t b;
    if (s->counts) {
        by *= (vec_f64)load_some(s->counts + i, n);
        by += ONES(lanes_equal(by, zero)); /* (a window without elements) */
        reciprocal = 1.0 / by;
    }
    b.q = sum * reciprocal;
    step = (remainders(sum, b.q, by) + rest) * reciprocal;
    inexact = (lanes_t)~lanes_above(s->exact - zero, missed);
    error = lanes_kept(inexact, missed) * (s->terms * 0x1p-52) * magnitude(reciprocal);
    error += magnitude(step) * 0x1p-48;
    b.least = step - error, b.most = step + error;
    if (s->overflows) { /* what is extreme is left to others */
        lanes_t plain = lanes_above(0x1p990 - zero, size) & lanes_above(size, 0x1p-900 - zero);
        plain |= lanes_equal(size, zero) & lanes_equal(missed, zero);
        b.q = lanes_kept(plain, b.q), b.least = lanes_kept(plain, b.least);
        b.most = lanes_chosen(plain, b.most, 1.0 - zero);
        if (s->halves) { /* the sum of high and low is the sum rounded, and so is the quotient */
            lanes_t exact = plain & (lanes_t)~inexact;
            b.least = lanes_chosen(exact, zero, b.least);
            b.most = lanes_chosen(exact, zero, b.most);
        }
    } else { /* infinities and NaN are those of elements */
        lanes_t wild = lanes_differ(high - high, zero);
        b.q = lanes_chosen(wild, high * reciprocal, b.q);
        b.least = lanes_chosen(wild, zero, b.least), b.most = lanes_chosen(wild, zero, b.most);
    }
    return b;
}
/* Return q + rest, cut off to 53 bits, the last of which is set unless that is exact. */
INLINE vec_f64 odd_sum(vec_f64 q, vec_f64 rest) {
    const vec_f64 zero = {0};
    vec_f64 sum = q + rest, part = sum - q, error = (q - (sum - part)) + (rest - part);
    lanes_t up = lanes_above(error, zero), down = lanes_above(zero, error);
    lanes_t below = lanes_above(zero, sum);
    vec_u64 even = ~(vec_u64)sum & 1, bits = (vec_u64)sum;
    vec_u64 away = (vec_u64)lanes_chosen(below, lanes_kept(down, (vec_f64)even),
                                         lanes_kept(up, (vec_f64)even));
    vec_u64 back = (vec_u64)lanes_chosen(below, lanes_kept(up, (vec_f64)even),
                                         lanes_kept(down, (vec_f64)even));
    return (vec_f64)(bits + away - back);
}

/* ---- one quotient of a sum that is exact, if its bounds do not decide ---- */

INLINE double settle_pair(const pairs_t *s, ptrdiff_t i, int precision, int least) {
    double by = s->counts ? s->counts[i] * s->divisor : s->divisor, sum, rest, y;
    two_sum(s->high[i], s->low[i], &sum, &rest);
    if (precision == 53) {
        y = nearest_double(sum / by, sum, rest, by);
        if (y == y) return y;
    }
    return settle(sum, rest, 0, by, precision, least);
}
INLINE int is_exact(const pairs_t *s, ptrdiff_t i) {
    return s->missed[i] < s->exact && s->high[i] - s->high[i] == 0;
}

/* Store quotients from `first` on, up to the first that is not sure: its bounds are rounded to
 * different results. Return which that is, or n. */
#define DEFINE_DIVIDE_PAIRS(name, T, RESULTS, SETTLED)                                            \
    static ptrdiff_t divide_pairs_##name(void *to, const pairs_t *s, ptrdiff_t first) {           \
        const vec_f64 by = (s->divisor || s->counts ? s->divisor : 1) - (vec_f64){0};             \
        const vec_f64 reciprocal = 1.0 / by;                                                      \
        for (ptrdiff_t i = first; i < s->n; i += WIDE) {                                          \
            const ptrdiff_t count = s->n - i < WIDE ? s->n - i : WIDE;                            \
            const bounds_t b = bound_quotients(s, i, by, reciprocal);                             \
            T one[WIDE], other[WIDE];                                                             \
            __typeof__(RESULTS(b.q, b.least)) least = RESULTS(b.q, b.least);                      \
            __typeof__(least) most = RESULTS(b.q, b.most);                                        \
            if (memcmp(&least, &most, sizeof least)) { /* (what comes after the last is equal) */ \
                memcpy(one, &least, sizeof least);                                                \
                memcpy(other, &most, sizeof most);                                                \
                for (ptrdiff_t j = 0; j < count; j++) {                                           \
                    if (!memcmp(one + j, other + j, sizeof(T))) continue;                         \
                    if (!is_exact(s, i + j)) {                                                    \
                        memcpy((T *)to + i, one, (size_t)j * sizeof(T));                          \
                        return i + j;                                                             \
                    }                                                                             \
                    one[j] = SETTLED(i + j);                                                      \
                }                                                                                 \
                memcpy(&least, one, sizeof least);                                                \
            }                                                                                     \
            if (count == WIDE)                                                                    \
                memcpy((T *)to + i, &least, sizeof least);                                        \
            else                                                                                  \
                memcpy((T *)to + i, &least, (size_t)count * sizeof(T));                           \
        }                                                                                         \
        return s->n;                                                                              \
    }
#define PAIR_F32(q, rest) quick_f32(odd_sum(q, rest) + (vec_f64){0})
#define PAIR_F16(q, rest) quick_f16(odd_sum(q, rest) + (vec_f64){0})
#define PAIR_BF16(q, rest) quick_bf16(odd_sum(q, rest) + (vec_f64){0})
#define PAIR_F64(q, rest) ((q) + (rest) + (vec_f64){0})
#define SETTLED_F32(i) (float)settle_pair(s, i, 24, -126)
#define SETTLED_F16(i) f16_bits((float)settle_pair(s, i, 11, -14))
#define SETTLED_BF16(i) bf16_bits((float)settle_pair(s, i, 8, -126))
#define SETTLED_F64(i) settle_pair(s, i, 53, -1022)
DEFINE_DIVIDE_PAIRS(f32, float, PAIR_F32, SETTLED_F32)
DEFINE_DIVIDE_PAIRS(f16, uint16_t, PAIR_F16, SETTLED_F16)
DEFINE_DIVIDE_PAIRS(bf16, uint16_t, PAIR_BF16, SETTLED_BF16)
DEFINE_DIVIDE_PAIRS(f64, double, PAIR_F64, SETTLED_F64)

/* ---- one sum, exactly ---- */

enum { MOST_TERMS = 64 };

/* A sum as doubles that do not overlap, the least first. */
typedef struct {
    int count;
    double terms[MOST_TERMS];
} exact_sum_t;

/* Add a number. Return 0 if the sum overflows, or has too many terms. */
INLINE int add_exactly(exact_sum_t *s, double x) {
    int used = 0;
    for (int i = 0; i < s->count; i++) {
        double error;
        two_sum(x, s->terms[i], &x, &error);
        if (error != 0) s->terms[used++] = error;
    }
    if (used == MOST_TERMS) return 0;
    if (x != 0) s->terms[used++] = x;
    s->count = used;
    return x - x == 0;
}
/* Return sum / d, rounded to `precision` bits as `settle` does. */
static double divide_exactly(const exact_sum_t *s, double d, int precision, int least) {
    double top[4] = {0}, q = s->count ? s->terms[s->count - 1] : 0, error;
    int used = 0;
    for (int i = s->count - 2; i >= 0 && used < 4; i--) { /* as few terms as will do */
        two_sum(q, s->terms[i], &q, &error);
        if (error != 0) top[used++] = q, q = error;
    }
    if (used < 4) top[used] = q;
    if (top[3] != 0) { /* of all that is left, the sign is enough */
        uint64_t bits = f64_bits(top[2]);
        if (!(bits & 1)) bits += (top[3] > 0) == (top[2] > 0) ? 1 : -1;
        BITS_OF(top[2], bits);
    }
    return settle(top[0], top[1], top[2], d, precision, least);
}

#endif
