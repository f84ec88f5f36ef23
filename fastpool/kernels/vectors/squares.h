/* Rows of square windows, whose sums down the columns stay in registers.
 *
 * `pixels` takes windows of 2x2 and 3x3, and of one row of 2 or 3, whose channels are neighbours: n
 * elements of at least a vector. The others take rows of single columns: runs, step and to_row are
 * theirs. Means are divided, but not sums in double of floats. */
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

/* Means of rows of square windows of single columns, at a stride of 2. Sums down the columns stay
 * in registers: those of neighbouring windows are made again. Outputs from `lo` to `hi` of a row
 * have all of their taps, and one divisor. There is at least a vector of them. */
#define DEFINE_SQUARES(name, T)                                                                   \
    /* Return the sums of a vector of outputs. At an edge some taps are none. */                  \
    INLINE vec_##name squares_at_##name(const squares_t *a, const T *const *p, const int k,       \
                                        const int edge, ptrdiff_t c) {                            \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), n = a->size;                    \
        vec_##name v[MOST_LEAF], of[2];                                                           \
        for (int j = 0; j < k; j += 2) {                                                          \
            ptrdiff_t i = a->first + c * 2 + j;                                                   \
            for (int part = 0; part < 2; part++, i += lanes)                                      \
                of[part] = edge ? TREE(k, WITHIN_##name) : TREE(k, ONE_VECTOR_##name);            \
            v[j] = (vec_##name)vec_concat_even((vec_t)of[0], (vec_t)of[1], p[0]);                 \
            if (j + 1 < k) v[j + 1] = (vec_##name)vec_concat_odd((vec_t)of[0], (vec_t)of[1], p[0]);\
        }                                                                                         \
        (void)n;                                                                                  \
        return TREE(k, COLUMN);                                                                   \
    }                                                                                             \
    INLINE void squares_of_##name(const squares_t *a, const int k, ptrdiff_t lo, ptrdiff_t hi) {  \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), at = a->vary ? lo : 0;          \
        const ptrdiff_t n = a->outputs, last = hi - lanes;                                        \
        const T *by = (const T *)a->by, *high = (const T *)a->high, *low = (const T *)a->low;     \
        const vec_##name zero = {0};                                                              \
        T *to = (T *)a->to;                                                                       \
        const T *p[MOST_LEAF];                                                                    \
        for (int t = 0; t < k; t++) p[t] = (const T *)a->taps[t];                                 \
        (void)by, (void)high, (void)low;                                                          \
        for (ptrdiff_t r = 0; r < a->runs; r++) {                                                 \
            for (int right = 0; right < 2; right++) {                                             \
                const ptrdiff_t c = right ? n - lanes : 0, from = a->vary ? c : 0;                \
                if (right ? hi == n : lo == 0) continue;                                          \
                const vec_##name sum = squares_at_##name(a, p, k, 1, c);                          \
                const vec_##name all_by = a->vary ? VEC_##name(by + from) : zero + by[0];         \
                const vec_##name all_high = a->vary ? VEC_##name(high + from) : zero + high[0];   \
                const vec_##name all_low = a->vary ? VEC_##name(low + from) : zero + low[0];      \
                (void)all_by, (void)all_high, (void)all_low;                                      \
                vec_store(to + c, (vec_t)DIVIDED_##name);                                         \
            }                                                                                     \
            const vec_##name all_by = zero + by[at], all_high = zero + high[at];                  \
            const vec_##name all_low = zero + low[at];                                            \
            (void)all_by, (void)all_high, (void)all_low;                                          \
            for (ptrdiff_t c = lo;;) {                                                            \
                const vec_##name sum = squares_at_##name(a, p, k, 0, c);                          \
                vec_store(to + c, (vec_t)DIVIDED_##name);                                         \
                if (c == last) break;                                                             \
                c = c + lanes < last ? c + lanes : last;                                          \
            }                                                                                     \
            to += a->to_row;                                                                      \
            for (int t = 0; t < k; t++) p[t] += a->step;                                          \
        }                                                                                         \
    }                                                                                             \
    /* Return 0 if there is no loop for these windows. */                                         \
    static NOINLINE int squares_##name(const squares_t *a, ptrdiff_t lo, ptrdiff_t hi) {          \
        switch (a->rows) {                                                                        \
        case 2: squares_of_##name(a, 2, lo, hi); break;                                           \
        case 3: squares_of_##name(a, 3, lo, hi); break;                                           \
        default: return 0;                                                                        \
        }                                                                                         \
        return 1;                                                                                 \
    }
#define WITHIN_f32(t) load_within_f32(p[t], i, n)
#define WITHIN_f64(t) load_within_f64(p[t], i, n)
#define VEC_f32(p) (vec_f32)vec_load(p)
#define VEC_f64(p) (vec_f64)vec_load(p)
DEFINE_SQUARES(f32, float)
DEFINE_SQUARES(f64, double)

/* The same at a stride of 1, with all outputs: the sums down the columns of a vector, and of the
 * next one, are made once, and shifted. */
#define DEFINE_SLIDE(name, T)                                                                     \
    INLINE vec_##name slide_column_##name(const T *const *p, const int k, ptrdiff_t i,            \
                                          ptrdiff_t n) {                                          \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        if (i >= 0 && i + lanes <= n) return TREE(k, ONE_VECTOR_##name);                          \
        if (i >= n || i + lanes <= 0) return (vec_##name){0};                                     \
        return TREE(k, WITHIN_##name);                                                            \
    }                                                                                             \
    INLINE void slide_by_##name(const squares_t *a, const int k) {                                \
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
            const int spills = r + 1 < a->runs && a->to_row == n && n >= lanes;                   \
            vec_##name v = slide_column_##name(p, k, first, size);                                \
            for (ptrdiff_t i = 0;;) {                                                             \
                const vec_##name next = slide_column_##name(p, k, first + i + lanes, size);       \
                const vec_##name sum = TREE(k, SHIFTED_##name);                                   \
                const vec_##name result = QUOTIENT(name, sum, COLUMNS_OF(name, by),               \
                                                   COLUMNS_OF(name, high), COLUMNS_OF(name, low));\
                if (i + lanes <= n || spills)                                                     \
                    vec_store(to + i, (vec_t)result);                                             \
                else                                                                              \
                    store_first_##name(to + i, result, n - i);                                    \
                i += lanes;                                                                       \
                if (i >= n) break;                                                                \
                v = next;                                                                         \
                if (i + lanes > n && !spills) {                                                   \
                    i = n - lanes;                                                                \
                    v = slide_column_##name(p, k, first + i, size);                               \
                }                                                                                 \
            }                                                                                     \
            to += a->to_row;                                                                      \
            for (int t = 0; t < k; t++) p[t] += a->step;                                          \
        }                                                                                         \
    }                                                                                             \
    /* Return 0 if there is no loop for these windows. */                                         \
    static NOINLINE int slide_sums_##name(const squares_t *a) {                                   \
        if ((a->rows - 1) * (ptrdiff_t)sizeof(T) > VEC_BYTES) return 0;                           \
        switch (a->rows) {                                                                        \
        case 2: slide_by_##name(a, 2); break;                                                     \
        case 3: slide_by_##name(a, 3); break;                                                     \
        case 5: slide_by_##name(a, 5); break;                                                     \
        case 7: slide_by_##name(a, 7); break;                                                     \
        default: return 0;                                                                        \
        }                                                                                         \
        return 1;                                                                                 \
    }
#define SHIFTED_f32(t) (vec_f32)vec_shift((vec_t)v, (vec_t)next, (t) * 4)
#define SHIFTED_f64(t) (vec_f64)vec_shift((vec_t)v, (vec_t)next, (t) * 8)
DEFINE_SLIDE(f32, float)
DEFINE_SLIDE(f64, double)

#define pixels(a, tag) BY_SUM(pixels, tag)(a)
#define slide_sums(a, tag) BY_SUM(slide_sums, tag)(a)
#define squares(a, lo, hi, tag) BY_SUM(squares, tag)(a, lo, hi)

#endif
