/* Rows of elements out of arrays, and of results into them. */
#ifndef FASTPOOL_BLOCK_ROWS_H
#define FASTPOOL_BLOCK_ROWS_H

#include "block_types.h"

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
#define gather(to, from, step, n, bytes) BY_BYTES(bytes, gather, to, from, step, n)
#define gather_lanes(to, from, places, n, bytes) BY_BYTES(bytes, gather_lanes, to, from, places, n)
#define split(rows, from, width, n, bytes) BY_BYTES(bytes, split, rows, from, width, n)

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

#endif
