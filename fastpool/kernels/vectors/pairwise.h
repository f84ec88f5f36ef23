/* Sums in pairs: taps along an axis are added by a tree of one shape. Its halves are added by
 * trees of their own, and the odd tap comes last. All vectors and all builds keep that order. */
#ifndef FASTPOOL_PAIRWISE_H
#define FASTPOOL_PAIRWISE_H

#include "loops.h"

#define MOST_LEAF 7 /* taps of a tree that stays in registers */
enum { NO_DIVISION, ONE_DIVISOR, DIVISORS_OF_COLUMNS };

/* Rows of sums: number (r, i) is the tree of taps[0..count][r * step + i * stride], divided. */
typedef struct {
    void *to;
    ptrdiff_t pitch; /* from one row of sums to the next */
    const void *taps[MOST_LEAF];
    int count;
    ptrdiff_t step; /* from one row of taps to the next */
    int stride;     /* 1 or 2 */
    ptrdiff_t rows, width;
    int division;
    const void *by; /* divisors: one, or of each column */
} pairs_of_t;

#define TREE_2(x) (x(0) + x(1))
#define TREE_3(x) (TREE_2(x) + x(2))
#define TREE_4(x) (TREE_2(x) + (x(2) + x(3)))
#define TREE_5(x) (TREE_4(x) + x(4))
#define TREE_6(x) (TREE_3(x) + ((x(3) + x(4)) + x(5)))
#define TREE_7(x) (TREE_6(x) + x(6))
#define TREE(count, x)                                                                            \
    ((count) == 1   ? x(0)                                                                        \
     : (count) == 2 ? TREE_2(x)                                                                   \
     : (count) == 3 ? TREE_3(x)                                                                   \
     : (count) == 4 ? TREE_4(x)                                                                   \
     : (count) == 5 ? TREE_5(x)                                                                   \
     : (count) == 6 ? TREE_6(x)                                                                   \
                    : TREE_7(x))

/* Rows of fewer elements than a vector are added one by one. The last vector of others overlaps the
 * one before it. */
#define DEFINE_ADD_IN_PAIRS(name, T)                                                              \
    INLINE void add_rows_of_##name(const pairs_of_t *a, const int count, const int stride,        \
                                   const int division) {                                          \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), last = a->width - lanes;        \
        const T *by = (const T *)a->by, *p[MOST_LEAF];                                            \
        const vec_##name one = (vec_##name){0} + (division == ONE_DIVISOR ? by[0] : 1);           \
        for (ptrdiff_t r = 0; r < a->rows; r++) {                                                 \
            T *to = (T *)a->to + r * a->pitch;                                                    \
            for (int t = 0; t < count; t++) p[t] = (const T *)a->taps[t] + r * a->step;           \
            if (last < 0) {                                                                       \
                for (ptrdiff_t i = 0; i < a->width; i++) {                                        \
                    T sum = TREE(count, ONE_ELEMENT);                                             \
                    to[i] = division == NO_DIVISION   ? sum                                       \
                            : division == ONE_DIVISOR ? sum / by[0]                               \
                                                      : sum / by[i];                              \
                }                                                                                 \
                continue;                                                                         \
            }                                                                                     \
            for (ptrdiff_t i = 0;;) {                                                             \
                vec_##name sum = stride == 1 ? TREE(count, ONE_VECTOR_##name)                     \
                                             : TREE(count, EVEN_VECTOR_##name);                   \
                if (division == ONE_DIVISOR) sum /= one;                                          \
                if (division == DIVISORS_OF_COLUMNS) sum /= (vec_##name)vec_load(by + i);         \
                vec_store(to + i, (vec_t)sum);                                                    \
                if (i == last) break;                                                             \
                i = i + lanes < last ? i + lanes : last;                                          \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    INLINE void add_strided_##name(const pairs_of_t *a, const int count, const int stride) {      \
        if (a->division == NO_DIVISION)                                                           \
            add_rows_of_##name(a, count, stride, NO_DIVISION);                                    \
        else if (a->division == ONE_DIVISOR)                                                      \
            add_rows_of_##name(a, count, stride, ONE_DIVISOR);                                    \
        else                                                                                      \
            add_rows_of_##name(a, count, stride, DIVISORS_OF_COLUMNS);                            \
    }                                                                                             \
    INLINE void add_divided_##name(const pairs_of_t *a, const int count) {                        \
        if (a->stride == 1)                                                                       \
            add_strided_##name(a, count, 1);                                                      \
        else                                                                                      \
            add_strided_##name(a, count, 2);                                                      \
    }                                                                                             \
    static NOINLINE void add_in_pairs_##name(const pairs_of_t *a) {                               \
        switch (a->count) {                                                                       \
        case 1: add_divided_##name(a, 1); break;                                                  \
        case 2: add_divided_##name(a, 2); break;                                                  \
        case 3: add_divided_##name(a, 3); break;                                                  \
        case 4: add_divided_##name(a, 4); break;                                                  \
        case 5: add_divided_##name(a, 5); break;                                                  \
        case 6: add_divided_##name(a, 6); break;                                                  \
        default: add_divided_##name(a, 7);                                                        \
        }                                                                                         \
    }                                                                                             \
    /* Add n sums to others. */                                                                   \
    static void add_to_##name(T *to, const T *sums, ptrdiff_t n) {                                \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        ptrdiff_t i = 0;                                                                          \
        for (; i + lanes <= n; i += lanes)                                                        \
            vec_store(to + i, (vec_t)((vec_##name)vec_load(to + i) +                              \
                                      (vec_##name)vec_load(sums + i)));                           \
        for (; i < n; i++) to[i] += sums[i];                                                      \
    }                                                                                             \
    /* Replace NaN by 0; `nans` gets 1 for each of them, and 0 for others. */                     \
    static VECTORISED void take_nans_##name(T *p, T *nans, ptrdiff_t n) {                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            nans[i] = p[i] == p[i] ? 0 : 1;                                                       \
            p[i] = p[i] == p[i] ? p[i] : 0;                                                       \
        }                                                                                         \
    }
/* Means of a row of pixels, whose channels are neighbours: n elements of at least a vector. The
 * sums down a column of pixels stay in registers for the windows that share it. */
typedef struct {
    void *to;
    ptrdiff_t to_col;                 /* from one output to the next */
    const void *taps[MOST_LEAF];      /* rows: their first pixel, or zeros */
    ptrdiff_t steps[MOST_LEAF];       /* from one pixel of a row to the next, or 0 */
    int rows, cols;                   /* of a window */
    ptrdiff_t first, stride, size, n; /* the first window begins there; pixels of a row; channels */
    ptrdiff_t outputs;
    const void *by; /* divisor of each output */
} rolling_t;
#define MOST_PIXEL_BYTES 1024 /* of windows of 7 x 7: their pixels would be far apart */

#define DEFINE_ROLL(name, T)                                                                      \
    INLINE vec_##name column_of_##name(const T *const *p, const ptrdiff_t *steps, ptrdiff_t col,  \
                                       const int rows) {                                          \
        return TREE(rows, PIXEL_##name);                                                          \
    }                                                                                             \
    INLINE void roll_by_##name(const rolling_t *a, const int rows, const int cols,                \
                               const int stride) { /* 0: that of `a`, no column is shared */      \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), last = a->n - lanes;            \
        const T *p[MOST_LEAF];                                                                    \
        for (ptrdiff_t i = 0;;) {                                                                 \
            vec_##name v[MOST_LEAF];                                                              \
            ptrdiff_t col = a->first;                                                             \
            for (int t = 0; t < rows; t++) p[t] = (const T *)a->taps[t] + i;                      \
            for (int j = 0; stride && j < cols - stride; j++)                                     \
                v[j + stride] = col + j >= 0 && col + j < a->size                                 \
                                    ? column_of_##name(p, a->steps, col + j, rows)                \
                                    : (vec_##name){0};                                            \
            for (ptrdiff_t c = 0; c < a->outputs; c++) {                                          \
                const int kept = stride ? cols - stride : 0;                                      \
                for (int j = 0; j < kept; j++) v[j] = v[j + stride];                              \
                for (int j = kept; j < cols; j++)                                                 \
                    v[j] = col + j >= 0 && col + j < a->size                                      \
                               ? column_of_##name(p, a->steps, col + j, rows)                     \
                               : (vec_##name){0};                                                 \
                vec_store((T *)a->to + c * a->to_col + i,                                         \
                          (vec_t)(TREE(cols, COLUMN) / ((const T *)a->by)[c]));                   \
                col += stride ? stride : a->stride;                                               \
            }                                                                                     \
            if (i == last) break;                                                                 \
            i = i + lanes < last ? i + lanes : last;                                              \
        }                                                                                         \
    }                                                                                             \
    /* Return 0 if there is no loop for these windows. */                                         \
    static NOINLINE int roll_##name(const rolling_t *a) {                                         \
        const int stride = a->outputs > 1 && a->stride < a->cols ? (int)a->stride : 0;            \
        const ptrdiff_t pixel = a->steps[a->rows / 2] * (ptrdiff_t)sizeof(T);                     \
        if (a->rows != a->cols || (a->rows == 7 && pixel > MOST_PIXEL_BYTES)) return 0;           \
        switch (10 * a->rows + stride) {                                                          \
        case 20: roll_by_##name(a, 2, 2, 0); break;                                               \
        case 21: roll_by_##name(a, 2, 2, 1); break;                                               \
        case 30: roll_by_##name(a, 3, 3, 0); break;                                               \
        case 31: roll_by_##name(a, 3, 3, 1); break;                                               \
        case 32: roll_by_##name(a, 3, 3, 2); break;                                               \
        case 50: roll_by_##name(a, 5, 5, 0); break;                                               \
        case 53: roll_by_##name(a, 5, 5, 3); break;                                               \
        case 70: roll_by_##name(a, 7, 7, 0); break;                                               \
        default: return 0;                                                                        \
        }                                                                                         \
        return 1;                                                                                 \
    }
#define PIXEL_f32(t) (vec_f32)vec_load(p[t] + col * steps[t])
#define PIXEL_f64(t) (vec_f64)vec_load(p[t] + col * steps[t])
#define COLUMN(j) v[j]
DEFINE_ROLL(f32, float)
DEFINE_ROLL(f64, double)

/* Divide n sums by `by` less the number of NaN, unless `fixed`. Sums of NaN alone become NaN.
 * `taps` and `by` are one number, or one of each sum. */
#define DEFINE_DIVIDE_COUNTED(name, T)                                                            \
    static VECTORISED void divide_counted_##name(T *sums, const double *nans, const T *taps,      \
                                                 const T *by, int one, int fixed, ptrdiff_t n) {  \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            T all = taps[one ? 0 : i], count = by[one ? 0 : i], none = (T)nans[i];                \
            T d = fixed ? count : (T)((double)count - nans[i]);                                   \
            T q = sums[i] / (d == 0 ? 1 : d);                                                     \
            sums[i] = none > 0 && none == all ? (T)NAN : q;                                       \
        }                                                                                         \
    }
DEFINE_DIVIDE_COUNTED(f32, float)
DEFINE_DIVIDE_COUNTED(f64, double)
#define ONE_ELEMENT(t) p[t][i * stride]
#define ONE_VECTOR_f32(t) (vec_f32)vec_load(p[t] + i)
#define ONE_VECTOR_f64(t) (vec_f64)vec_load(p[t] + i)
#define EVEN_OF(t) vec_concat_even(vec_load(p[t] + 2 * i), vec_load(p[t] + 2 * i + lanes), p[t])
#define EVEN_VECTOR_f32(t) (vec_f32)EVEN_OF(t)
#define EVEN_VECTOR_f64(t) (vec_f64)EVEN_OF(t)
DEFINE_ADD_IN_PAIRS(f32, float)
DEFINE_ADD_IN_PAIRS(f64, double)
#define BY_SUM(f, p) _Generic(*(p), float: f##_f32, double: f##_f64)
#define add_in_pairs(a, tag) BY_SUM(add_in_pairs, tag)(a)
#define roll(a, tag) BY_SUM(roll, tag)(a)
#define add_to(to, sums, n) BY_SUM(add_to, to)(to, sums, n)
#define divide_counted(sums, nans, taps, by, one, fixed, n)                                       \
    BY_SUM(divide_counted, sums)(sums, nans, taps, by, one, fixed, n)
#define take_nans(p, nans, n) BY_SUM(take_nans, p)(p, nans, n)

#endif
