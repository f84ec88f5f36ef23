/* Rows of square windows, whose sums down the columns stay in registers.
 *
 * `pixels` takes windows of 2x2 and 3x3, and of one row of 2 or 3, whose channels are neighbours: n
 * elements of at least a vector. `slide_sums` takes rows of single columns: only it has runs, step
 * and to_row. Means are divided, but not sums in double of floats. */
#ifndef FASTPOOL_SQUARES_H
#define FASTPOOL_SQUARES_H

#include "pairwise.h"

typedef struct {
    void *to;
    ptrdiff_t to_col;                 /* from one output to the next */
    const void *taps[MOST_LEAF];      /* rows: their first pixel, or zeros */
    const void *zeros;                /* a pixel of zeros */
    ptrdiff_t steps[MOST_LEAF];       /* from one pixel of a row to the next, or 0 */
    int rows, cols;                   /* of a window */
    ptrdiff_t first, stride, size, n; /* the first window begins there; pixels of a row; channels */
    ptrdiff_t outputs;
    const void *by, *high, *low; /* divisor of each output, and parts of its reciprocal */
    int vary;                    /* or of all outputs */
    ptrdiff_t runs, step, to_row; /* rows of outputs; from one to the next, of taps and results */
} squares_t;

/* The taps of a window are pointers, to zeros where there is no pixel. */
#define DEFINE_PIXELS(name, vec, T, S, TAP, DIVIDED_SUM)                                          \
    INLINE void pixels_of_##name(const squares_t *a, const int rows, const int cols) {            \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), last = a->n - lanes;            \
        const T *by = (const T *)a->by, *high = (const T *)a->high, *low = (const T *)a->low;     \
        const vec zero = {0};                                                                     \
        (void)by, (void)high, (void)low, (void)zero;                                              \
        for (ptrdiff_t c = 0; c < a->outputs; c++) {                                              \
            const S *q[9];                                                                        \
            for (int j = 0; j < cols; j++) {                                                      \
                const ptrdiff_t col = a->first + c * a->stride + j;                               \
                for (int t = 0; t < rows; t++)                                                    \
                    q[j * rows + t] = col >= 0 && col < a->size                                   \
                                       ? (const S *)a->taps[t] + col * a->steps[t]                \
                                       : (const S *)a->zeros;                                     \
            }                                                                                     \
            const vec all_by = zero + (by ? by[c] : 1);                                           \
            const vec all_high = zero + (high ? high[c] : 1), all_low = zero + (low ? low[c] : 0);\
            (void)all_by, (void)all_high, (void)all_low;                                          \
            for (ptrdiff_t i = 0;;) {                                                             \
                vec v[MOST_LEAF];                                                                 \
                for (int j = 0; j < cols; j++) {                                                  \
                    const S *const *p = q + j * rows;                                             \
                    v[j] = TREE(rows, TAP);                                                       \
                }                                                                                 \
                const vec sum = TREE(cols, COLUMN);                                               \
                vec_store((T *)a->to + c * a->to_col + i, (vec_t)DIVIDED_SUM);                    \
                if (i == last) break;                                                             \
                i = i + lanes < last ? i + lanes : last;                                          \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static NOINLINE void pixels_##name(const squares_t *a) {                                      \
        if (a->rows == 1 && a->cols == 2)                                                         \
            pixels_of_##name(a, 1, 2);                                                            \
        else if (a->rows == 1)                                                                    \
            pixels_of_##name(a, 1, 3);                                                            \
        else if (a->rows == 2)                                                                    \
            pixels_of_##name(a, 2, 2);                                                            \
        else                                                                                      \
            pixels_of_##name(a, 3, 3);                                                            \
    }
#define COLUMN(j) v[j]
#define DIVIDED_f32 QUOTIENT(f32, sum, all_by, all_high, all_low)
#define DIVIDED_f64 QUOTIENT(f64, sum, all_by, all_high, all_low)
DEFINE_PIXELS(f32, vec_f32, float, float, ONE_VECTOR_f32, DIVIDED_f32)
DEFINE_PIXELS(f64, vec_f64, double, double, ONE_VECTOR_f64, DIVIDED_f64)
DEFINE_PIXELS(f64_of_f32, vec_f64, double, float, WIDE_F32, sum)

/* Means of rows of square windows of single columns, at a stride of 1 or 2. The sums down the
 * columns of a vector of outputs, and of the next one, are made once, and shifted. At a stride of 2
 * they are two vectors each, of every other column. */
#define DEFINE_SLIDE(name, T)                                                                     \
    INLINE vec_##name slide_column_##name(const T *const *p, const int k, ptrdiff_t i,            \
                                          ptrdiff_t n) {                                          \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        if (i >= 0 && i + lanes <= n) return TREE(k, ONE_VECTOR_##name);                          \
        if (i >= n || i + lanes <= 0) return (vec_##name){0};                                     \
        return TREE(k, WITHIN_##name);                                                            \
    }                                                                                             \
    INLINE void slide_columns_##name(vec_##name *v, const T *const *p, const int k,               \
                                     const int stride, ptrdiff_t i, ptrdiff_t n) {                \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        const int inside = k <= stride && i >= 0 && i + stride * lanes <= n;                      \
        v[0] = inside ? TREE(k, ONE_VECTOR_##name) : slide_column_##name(p, k, i, n);             \
        if (stride == 2) {                                                                        \
            i += lanes;                                                                           \
            v[1] = inside ? TREE(k, ONE_VECTOR_##name) : slide_column_##name(p, k, i, n);         \
            const vec_t a = (vec_t)v[0], b = (vec_t)v[1];                                         \
            v[0] = (vec_##name)vec_concat_even(a, b, p[0]);                                       \
            v[1] = (vec_##name)vec_concat_odd(a, b, p[0]);                                        \
        }                                                                                         \
    }                                                                                             \
    INLINE void slide_by_##name(const squares_t *a, const int k, const int stride) {              \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), each = a->vary ? -1 : 0;        \
        const ptrdiff_t n = a->outputs, first = a->first, size = a->size;                         \
        const T *by = (const T *)a->by, *high = (const T *)a->high, *low = (const T *)a->low;     \
        const vec_##name zero = {0};                                                              \
        const T *p[MOST_LEAF];                                                                    \
        T *to = (T *)a->to;                                                                       \
        SPREAD(name, T)                                                                           \
        for (int t = 0; t < k; t++) p[t] = (const T *)a->taps[t];                                 \
        for (ptrdiff_t r = 0; r < a->runs; r++) {                                                 \
            /* (The next row writes over what a vector stores after this one.) */                 \
            const int spills =                                                                    \
                k > stride && r + 1 < a->runs && a->to_row == n && n >= lanes;                    \
            vec_##name v[2] = {zero, zero}, next[2] = {zero, zero};                               \
            slide_columns_##name(v, p, k, stride, first, size);                                   \
            for (ptrdiff_t i = 0;;) {                                                             \
                if (k > stride)                                                                   \
                    slide_columns_##name(next, p, k, stride, first + (i + lanes) * stride, size); \
                const vec_##name sum = TREE(k, SHIFTED_##name);                                   \
                const vec_##name result = QUOTIENT(name, sum, COLUMNS_OF(name, by),               \
                                                   COLUMNS_OF(name, high), COLUMNS_OF(name, low));\
                if (i + lanes <= n || spills)                                                     \
                    vec_store(to + i, (vec_t)result);                                             \
                else                                                                              \
                    store_first_##name(to + i, result, n - i);                                    \
                i += lanes;                                                                       \
                if (i >= n) break;                                                                \
                const int overlaps = i + lanes > n && !spills;                                    \
                if (overlaps) i = n - lanes;                                                      \
                v[0] = next[0], v[1] = next[stride - 1];                                          \
                if (overlaps || k <= stride)                                                      \
                    slide_columns_##name(v, p, k, stride, first + i * stride, size);              \
            }                                                                                     \
            to += a->to_row;                                                                      \
            for (int t = 0; t < k; t++) p[t] += a->step;                                          \
        }                                                                                         \
    }                                                                                             \
    /* Return 0 if there is no loop for these windows. */                                         \
    static NOINLINE int slide_sums_##name(const squares_t *a) {                                   \
        if ((a->rows - 1) / a->stride * (ptrdiff_t)sizeof(T) > VEC_BYTES) return 0;               \
        switch (8 * a->stride + a->rows) {                                                        \
        case 8 + 2: slide_by_##name(a, 2, 1); break;                                              \
        case 8 + 3: slide_by_##name(a, 3, 1); break;                                              \
        case 8 + 5: slide_by_##name(a, 5, 1); break;                                              \
        case 8 + 7: slide_by_##name(a, 7, 1); break;                                              \
        case 16 + 2: slide_by_##name(a, 2, 2); break;                                             \
        case 16 + 3: slide_by_##name(a, 3, 2); break;                                             \
        default: return 0;                                                                        \
        }                                                                                         \
        return 1;                                                                                 \
    }
#define WITHIN_f32(t) load_within_f32(p[t], i, n)
#define WITHIN_f64(t) load_within_f64(p[t], i, n)
/* (Both numbers of bytes are constants, as some compilers ask.) */
#define SHIFTED(name, t, bytes)                                                                   \
    (vec_##name)(stride == 1 ? vec_shift((vec_t)v[0], (vec_t)next[0], (t) * bytes)                \
                             : vec_shift((vec_t)v[(t) % 2], (vec_t)next[(t) % 2], (t) / 2 * bytes))
#define SHIFTED_f32(t) SHIFTED(f32, t, 4)
#define SHIFTED_f64(t) SHIFTED(f64, t, 8)
DEFINE_SLIDE(f32, float)
DEFINE_SLIDE(f64, double)

#define pixels(a, tag) BY_SUM(pixels, tag)(a)
#define slide_sums(a, tag) BY_SUM(slide_sums, tag)(a)

#endif
