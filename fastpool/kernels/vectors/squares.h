/* Rows of square windows, whose sums down the columns stay in registers.
 *
 * `pixels` takes windows of 2x2 and 3x3, and of one row of 2 or 3, whose channels are neighbours: n
 * elements of at least a vector. `slide_pixels` takes 2x2 and 3x3 at a stride of 1, `slide_sums`
 * rows of single columns: only these have runs, step and to_row. Means are divided, but not sums in
 * double of floats. */
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
 * they are two vectors each, of every other column. Up to `most` rows of outputs share loads.
 * Elements may be missing under the first vector and from the last one on. */
#define DEFINE_SLIDE(name, T)                                                                     \
    /* Set the sums of the columns from i on: some lanes, or all if `some` is NULL. */            \
    INLINE void slide_columns_##name(vec_##name (*v)[2], const T *const *p, const int k,          \
                                     const int stride, const int rows, ptrdiff_t i,               \
                                     const lanes_##name *some) {                                  \
        for (int s = 0; s < stride; s++, i += VEC_BYTES / (ptrdiff_t)sizeof(T)) {                 \
            vec_##name x[MOST_LEAF + 1];                                                          \
            for (int t = 0; t < k + rows - 1; t++)                                                \
                x[t] = some ? load_lanes_##name(p[t] + i, some[s]) : VEC_##name(p[t] + i);        \
            v[0][s] = TREE(k, LOADED);                                                            \
            if (rows == 2) v[1][s] = TREE(k, LOADED_BELOW);                                       \
        }                                                                                         \
        if (stride == 2) {                                                                        \
            const vec_t a = (vec_t)v[0][0], b = (vec_t)v[0][1];                                   \
            v[0][0] = (vec_##name)vec_concat_even(a, b, p[0]);                                    \
            v[0][1] = (vec_##name)vec_concat_odd(a, b, p[0]);                                     \
        }                                                                                         \
    }                                                                                             \
    INLINE vec_##name slide_mean_##name(const vec_##name *v, const vec_##name *next, const int k, \
                                        const int stride, vec_##name by, vec_##name high,         \
                                        vec_##name low) {                                         \
        const vec_##name sum = TREE(k, SHIFTED_##name);                                           \
        (void)by, (void)high, (void)low;                                                          \
        return QUOTIENT(name, sum, by, high, low);                                                \
    }                                                                                             \
    INLINE void slide_by_##name(const squares_t *a, const int k, const int stride,                \
                                const int most) {                                                 \
        enum { LANES = VEC_BYTES / sizeof(T) };                                                   \
        const ptrdiff_t n = a->outputs, first = a->first;                                         \
        const ptrdiff_t last = (n - 1) / LANES * LANES, rest = n - last;                          \
        const T *by = (const T *)a->by, *high = (const T *)a->high, *low = (const T *)a->low;     \
        /* (One divisor stays in registers: 1.07 to 1.12 times as fast, AVX-512 and AVX2.) */     \
        const vec_##name zero = {0}, all_by = zero + by[0];                                       \
        const vec_##name all_high = zero + high[0], all_low = zero + low[0];                      \
        const int vary = a->vary;                                                                 \
        const int shares = most == 2 && (const T *)a->taps[1] == (const T *)a->taps[0] + a->step; \
        const int beyond = k > stride && first + (last + LANES) * stride < a->size;               \
        const T *p[MOST_LEAF + 1];                                                                \
        T *to = (T *)a->to;                                                                       \
        lanes_##name begin[2], end[2], after[2];                                                  \
        (void)all_by, (void)all_high, (void)all_low;                                              \
        for (int s = 0; s < stride; s++) {                                                        \
            const ptrdiff_t i = first + s * LANES;                                                \
            begin[s] = lanes_within_##name(i, a->size);                                           \
            end[s] = lanes_within_##name(i + last * stride, a->size);                             \
            after[s] = lanes_within_##name(i + (last + LANES) * stride, a->size);                 \
        }                                                                                         \
        for (int t = 0; t < k; t++) p[t] = (const T *)a->taps[t];                                 \
        for (ptrdiff_t r = 0, some; r < a->runs; r += some) {                                     \
            some = shares && r + 1 < a->runs ? 2 : 1;                                             \
            /* (The next row writes over what a vector stores after this one.) */                 \
            const int room = rest == LANES, fits = room || (a->to_row == n && n >= LANES);        \
            const int spills = room || (fits && r + some < a->runs);                              \
            vec_##name v[2][2] = {{zero, zero}, {zero, zero}}, next[2][2], held = zero;           \
            p[k] = some == 2 ? p[k - 1] + a->step : (const T *)a->zeros;                          \
            slide_columns_##name(v, p, k, stride, most, first, begin);                            \
            for (ptrdiff_t i = 0, j; i < last; i = j) {                                           \
                j = i + LANES;                                                                    \
                if (j < last)                                                                     \
                    slide_columns_##name(next, p, k, stride, most, first + j * stride, NULL);     \
                else                                                                              \
                    slide_columns_##name(next, p, k, stride, most, first + j * stride, end);      \
                for (int y = 0; y < most && y < some; y++) {                                      \
                    const vec_##name mean = slide_mean_##name(                                    \
                        v[y], next[y], k, stride, DIVISOR(name, by, i), DIVISOR(name, high, i),   \
                        DIVISOR(name, low, i));                                                   \
                    if (y == 1 && i == 0) held = mean;                                            \
                    vec_store(to + y * a->to_row + i, (vec_t)mean);                               \
                    v[y][0] = next[y][0], v[y][1] = next[y][1];                                   \
                }                                                                                 \
            }                                                                                     \
            for (int y = 0; y < 2; y++) next[y][0] = next[y][1] = zero;                           \
            if (beyond)                                                                           \
                slide_columns_##name(next, p, k, stride, most, first + (last + LANES) * stride,   \
                                     after);                                                      \
            for (int y = 0; y < most && y < some; y++) {                                          \
                const vec_##name mean = slide_mean_##name(                                        \
                    v[y], next[y], k, stride, DIVISOR(name, by, last),                            \
                    DIVISOR(name, high, last), DIVISOR(name, low, last));                         \
                if (y + 1 < some ? fits : spills)                                                 \
                    vec_store(to + last, (vec_t)mean);                                            \
                else                                                                              \
                    store_first_##name(to + last, mean, rest);                                    \
                to += a->to_row;                                                                  \
                if (y == 0 && some == 2 && last > 0) vec_store(to, (vec_t)held);                  \
            }                                                                                     \
            for (int t = 0; t < k; t++) p[t] += some * a->step;                                   \
        }                                                                                         \
    }                                                                                             \
    /* Return 0 if there is no loop for these windows. */                                         \
    static NOINLINE int slide_sums_##name(const squares_t *a) {                                   \
        enum { LANES = VEC_BYTES / sizeof(T) };                                                   \
        const ptrdiff_t last = (a->outputs - 1) / LANES * LANES;                                  \
        if ((a->rows - 1) / a->stride > LANES || a->first + LANES < 0) return 0;                  \
        if (a->first + last * a->stride > a->size) return 0;                                      \
        switch (8 * a->stride + a->rows) {                                                        \
        case 8 + 2: slide_by_##name(a, 2, 1, 1); break;                                           \
        case 8 + 3: /* (Longer rows take 1.08 times as long in pairs.) */                         \
            if (last <= 8 * LANES)                                                                \
                slide_by_##name(a, 3, 1, 2);                                                      \
            else                                                                                  \
                slide_by_##name(a, 3, 1, 1);                                                      \
            break;                                                                                \
        case 8 + 5: slide_by_##name(a, 5, 1, 2); break;                                           \
        case 8 + 7: slide_by_##name(a, 7, 1, 2); break;                                           \
        case 16 + 2: slide_by_##name(a, 2, 2, 1); break;                                          \
        case 16 + 3: slide_by_##name(a, 3, 2, 1); break;                                          \
        default: return 0;                                                                        \
        }                                                                                         \
        return 1;                                                                                 \
    }
#define LOADED(t) x[t]
#define LOADED_BELOW(t) x[(t) + 1]
#define VEC_f32(p) (vec_f32)vec_load(p)
#define VEC_f64(p) (vec_f64)vec_load(p)
/* (Both numbers of bytes are constants, as some compilers ask.) */
#define SHIFTED(name, t, bytes)                                                                   \
    (vec_##name)(stride == 1 ? vec_shift((vec_t)v[0], (vec_t)next[0], (t) * bytes)                \
                             : vec_shift((vec_t)v[(t) % 2], (vec_t)next[(t) % 2], (t) / 2 * bytes))
#define SHIFTED_f32(t) SHIFTED(f32, t, 4)
#define SHIFTED_f64(t) SHIFTED(f64, t, 8)
#define DIVISOR(name, p, i) (vary ? VEC_##name(p + (i)) : all_##p)
DEFINE_SLIDE(f32, float)
DEFINE_SLIDE(f64, double)

/* Means of rows of windows of 2x2 and 3x3 at a stride of 1, of pixels whose channels are
 * neighbours: n elements of at least a vector. The sums down the columns of a window stay in
 * registers. Two rows of outputs share loads. Some pixels are pooled at a time, so that memory is
 * read as it lies. */
enum { SOME_PIXEL_BYTES = 4096, LEAST_PIXELS = 8 };
#define DEFINE_SLIDE_PIXELS(name, T)                                                              \
    /* Set the sums of a column of windows, one below the other. */                               \
    INLINE void pixel_columns_##name(vec_##name *v, const squares_t *a, const T *const *p,        \
                                     const int k, const int rows, ptrdiff_t col) {                \
        vec_##name x[4];                                                                          \
        v[0] = v[1] = (vec_##name){0};                                                            \
        if (col < 0 || col >= a->size) return;                                                    \
        for (int t = 0; t < k + rows - 1; t++)                                                    \
            x[t] = VEC_##name(p[t] + col * a->steps[t < k ? t : k - 1]);                          \
        v[0] = TREE(k, LOADED);                                                                   \
        if (rows == 2) v[1] = TREE(k, LOADED_BELOW);                                              \
    }                                                                                             \
    INLINE void slide_pixels_of_##name(const squares_t *a, const T *const *rows, T *to,           \
                                       const int k, const int some) {                             \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), last = a->n - lanes;            \
        const T *by = (const T *)a->by, *high = (const T *)a->high, *low = (const T *)a->low;     \
        const ptrdiff_t to_col = a->to_col, to_row = a->to_row, outputs = a->outputs;             \
        const ptrdiff_t some_cols = SOME_PIXEL_BYTES / (a->n * (ptrdiff_t)sizeof(T));             \
        const ptrdiff_t part = some_cols < LEAST_PIXELS ? LEAST_PIXELS : some_cols;               \
        const vec_##name zero = {0};                                                              \
        for (ptrdiff_t lo = 0, hi; lo < outputs; lo = hi) {                                       \
            hi = outputs - lo > part ? lo + part : outputs;                                       \
            for (ptrdiff_t i = 0;;) {                                                             \
                const T *p[4];                                                                    \
                vec_##name v[2][3], next[2];                                                      \
                for (int t = 0; t < k + some - 1; t++) p[t] = rows[t] + i;                        \
                for (int j = 1; j < k; j++) {                                                     \
                    pixel_columns_##name(next, a, p, k, some, a->first + lo + j - 1);             \
                    for (int y = 0; y < some; y++) v[y][j] = next[y];                             \
                }                                                                                 \
                for (ptrdiff_t c = lo, d = lo * a->vary; c < hi; c++, d += a->vary) {             \
                    const vec_##name all_by = zero + by[d], all_high = zero + high[d];            \
                    const vec_##name all_low = zero + low[d];                                     \
                    (void)all_by, (void)all_high, (void)all_low;                                  \
                    pixel_columns_##name(next, a, p, k, some, a->first + k - 1 + c);              \
                    for (int y = 0; y < some; y++) {                                              \
                        for (int j = 1; j < k; j++) v[y][j - 1] = v[y][j];                        \
                        v[y][k - 1] = next[y];                                                    \
                        const vec_##name sum = TREE(k, OF_ROW);                                   \
                        vec_store(to + y * to_row + c * to_col + i,                               \
                                  (vec_t)QUOTIENT(name, sum, all_by, all_high, all_low));         \
                    }                                                                             \
                }                                                                                 \
                if (i == last) break;                                                             \
                i = i + lanes < last ? i + lanes : last;                                          \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    INLINE void slide_pixels_by_##name(const squares_t *a, const int k) {                         \
        const T *p[4];                                                                            \
        T *to = (T *)a->to;                                                                       \
        for (int t = 0; t < k; t++) p[t] = (const T *)a->taps[t];                                 \
        for (ptrdiff_t r = 0; r + 1 < a->runs; r += 2, to += 2 * a->to_row) {                     \
            p[k] = p[k - 1] + a->step;                                                            \
            slide_pixels_of_##name(a, p, to, k, 2);                                               \
            for (int t = 0; t < k; t++) p[t] += 2 * a->step;                                      \
        }                                                                                         \
        if (a->runs % 2) slide_pixels_of_##name(a, p, to, k, 1);                                  \
    }                                                                                             \
    static NOINLINE void slide_pixels_##name(const squares_t *a) {                                \
        if (a->rows == 2)                                                                         \
            slide_pixels_by_##name(a, 2);                                                         \
        else                                                                                      \
            slide_pixels_by_##name(a, 3);                                                         \
    }
#define OF_ROW(j) v[y][j]
DEFINE_SLIDE_PIXELS(f32, float)
DEFINE_SLIDE_PIXELS(f64, double)

#define pixels(a, tag) BY_SUM(pixels, tag)(a)
#define slide_sums(a, tag) BY_SUM(slide_sums, tag)(a)
#define slide_pixels(a, tag) BY_SUM(slide_pixels, tag)(a)

#endif
