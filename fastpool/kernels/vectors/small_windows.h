/* Sums of small windows, in registers: along a row first, then down the rows.
 *
 * Windows are over rows of floats or doubles. A strip of neighbouring outputs goes down the rows.
 * So what was added up along a row serves every window that the row is in. */
#ifndef FASTPOOL_SMALL_WINDOWS_H
#define FASTPOOL_SMALL_WINDOWS_H

#include "wide.h"

enum { MOST_SMALL_TAPS = 64 }; /* along a row */

/* What the rows hold, and in what their sums are. */
enum { FLOATS_IN_DOUBLE, DOUBLES, FLOATS };
/* How windows are pooled. */
enum { EXACT_FROM_FLOATS, EXACT_FROM_DOUBLES, FLOATS_IN_ORDER, DOUBLES_IN_ORDER };

typedef struct {
    const char *const *rows; /* where element 0 of each row would be */
    ptrdiff_t slab;          /* rows from one leading tap to the next */
    ptrdiff_t slabs, kernel, dilation, stride; /* of a window, in rows */
    ptrdiff_t taps;          /* along a row */
    ptrdiff_t offset[MOST_SMALL_TAPS]; /* of each tap */
    ptrdiff_t lo, hi;        /* the elements of a row; others are 0, and not read */
    int pairs;               /* of taps, at every second element (`pool_pairs`) */
} small_windows_t;

/* Outputs of the next step: sums, or their quotients. */
typedef struct {
    char *data;
    ptrdiff_t pitch;   /* bytes from one row of outputs to the next */
    const void *by;    /* a divisor per output, or one; NULL: they stay sums */
    int one_divisor;
} small_results_t;

#if VEC_BYTES >= 32
#define MASKED_ROWS 1
#else
#define MASKED_ROWS 0
#endif

INLINE ptrdiff_t row_item(int kind) { return kind == DOUBLES ? 8 : 4; }
INLINE ptrdiff_t sum_item(int kind) { return kind == FLOATS ? 4 : 8; }
INLINE ptrdiff_t sum_lanes(int kind) { return VEC_BYTES / sum_item(kind); }
INLINE vec_t load_row(int kind, const char *p) {
    return kind == FLOATS_IN_DOUBLE ? wide_f32((const float *)p) : vec_load(p);
}
INLINE vec_t add_sums(int kind, vec_t a, vec_t b) {
    return kind == FLOATS ? (vec_t)((vec_f32)a + (vec_f32)b) : wide_add(a, b);
}

/* Elements first <= i < stop of a vector; the others are 0, and not read. */
#if VEC_BYTES == 64
typedef __mmask16 some_t;
INLINE some_t some_of(int kind, ptrdiff_t first, ptrdiff_t stop) {
    ptrdiff_t lanes = sum_lanes(kind);
    first = first < 0 ? 0 : first > lanes ? lanes : first;
    stop = stop < first ? first : stop > lanes ? lanes : stop;
    return (some_t)(_bzhi_u32(0xffff, (unsigned)stop) & ~_bzhi_u32(0xffff, (unsigned)first));
}
INLINE vec_t load_some_of_row(int kind, const char *p, some_t some) {
    if (kind == FLOATS_IN_DOUBLE)
        return (vec_t)_mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)some, p));
    if (kind == DOUBLES) return (vec_t)_mm512_maskz_loadu_pd((__mmask8)some, p);
    return (vec_t)_mm512_maskz_loadu_ps(some, p);
}
#elif VEC_BYTES == 32
typedef __m256i some_t;
INLINE some_t some_of(int kind, ptrdiff_t first, ptrdiff_t stop) {
    int64_t at = first < -8 ? -8 : first > 8 ? 8 : first, to = stop < -8 ? -8 : stop > 8 ? 8 : stop;
    if (kind == DOUBLES) {
        __m256i i = _mm256_setr_epi64x(0, 1, 2, 3);
        return _mm256_andnot_si256(_mm256_cmpgt_epi64(_mm256_set1_epi64x(at), i),
                                   _mm256_cmpgt_epi64(_mm256_set1_epi64x(to), i));
    } else {
        __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)at), i),
                                   _mm256_cmpgt_epi32(_mm256_set1_epi32((int)to), i));
    }
}
INLINE vec_t load_some_of_row(int kind, const char *p, some_t some) {
    if (kind == FLOATS_IN_DOUBLE)
        return (vec_t)_mm256_cvtps_pd(
            _mm_maskload_ps((const float *)p, _mm256_castsi256_si128(some)));
    if (kind == DOUBLES) return (vec_t)_mm256_maskload_pd((const double *)p, some);
    return (vec_t)_mm256_maskload_ps((const float *)p, some);
}
#else
typedef int some_t;
INLINE some_t some_of(int kind, ptrdiff_t first, ptrdiff_t stop) { return 0; }
INLINE vec_t load_some_of_row(int kind, const char *p, some_t some) { return load_row(kind, p); }
#endif

/* Return `sum` and the taps along a row. */
INLINE vec_t add_row_taps(int kind, vec_t sum, int adds, const char *p, ptrdiff_t taps,
                          const ptrdiff_t *offset, const some_t *some) {
    for (ptrdiff_t t = 0; t < taps; t++) {
        vec_t v = some ? load_some_of_row(kind, p + offset[t], some[t])
                       : load_row(kind, p + offset[t]);
        sum = adds || t ? add_sums(kind, sum, v) : v;
    }
    return sum;
}

/* Return the divisors of the outputs from i on. */
INLINE vec_t divisors_at(int kind, const small_results_t *y, ptrdiff_t i) {
    if (!y->one_divisor) return vec_load((const char *)y->by + i * sum_item(kind));
    return kind == FLOATS ? (vec_t)(*(const float *)y->by - (vec_f32){0})
                          : (vec_t)(*(const double *)y->by - (vec_f64){0});
}

INLINE void store_sums(int kind, const small_results_t *y, char *to, vec_t sum, vec_t by) {
    if (y->by) /* (sums begin with 0: that of -0 is 0) */
        sum = kind == FLOATS
            ? (vec_t)(((vec_f32)sum + (vec_f32){0}) / (vec_f32)by)
            : (vec_t)(((vec_f64)sum + (vec_f64){0}) / (vec_f64)by);
    vec_store(to, sum);
}

/* Add up the windows of `rows` neighbouring rows of outputs, of `vectors` vectors each.
 *
 * Both are constants, so that sums stay in registers. Each sum waits for its last addition, so
 * there should be four of them. */
INLINE void add_windows(int kind, const small_windows_t *w, const char *const *at_row, vec_t *sums,
                        int rows, int vectors, ptrdiff_t kernel, ptrdiff_t stride, ptrdiff_t taps,
                        const ptrdiff_t *offset, const some_t *some) {
    const ptrdiff_t width = sum_lanes(kind) * row_item(kind);
    for (int i = 0; i < rows * vectors; i++) sums[i] = wide_zero();
    for (ptrdiff_t s = 0; s < w->slabs; s++, at_row += w->slab)
        for (ptrdiff_t k = 0; k < kernel; k++) {
            const char *p[4];
            for (int r = 0; r < rows; r++) p[r] = at_row[r * stride + k * w->dilation];
            for (ptrdiff_t t = 0; t < taps; t++)
                for (int i = 0; i < rows * vectors; i++) {
                    const char *at = p[i / vectors] + i % vectors * width + offset[t];
                    sums[i] = add_sums(kind, sums[i], some ? load_some_of_row(kind, at, some[t])
                                                           : load_row(kind, at));
                }
        }
}

/* Pool `vectors` neighbouring vectors of outputs of `count` rows.
 *
 * `kernel`, `stride` and `taps` are constants for the common windows. Sums along rows that windows
 * share stay in registers, unless additions are in order. */
INLINE void pool_strip(int kind, int in_order, const small_windows_t *w, ptrdiff_t at,
                       ptrdiff_t count, const small_results_t *y, char *to, const vec_t *by,
                       int vectors, int masked, ptrdiff_t kernel, ptrdiff_t stride, ptrdiff_t taps,
                       int most) {
    /* Rows of windows that are added up at once, if vectors alone are too few for that. */
    const int at_once = most / vectors;
    const ptrdiff_t item = row_item(kind), width = sum_lanes(kind) * item;
    const int shares = !in_order; /* (2 or 3 rows at stride 1) */
    const char *const *rows = w->rows;
    ptrdiff_t offset[MOST_SMALL_TAPS], r = 0;
    some_t some[MOST_SMALL_TAPS];
    vec_t kept[2][4];
    for (ptrdiff_t t = 0; t < taps; t++) {
        offset[t] = (w->offset[t] + at) * item;
        if (masked)
            some[t] = some_of(kind, w->lo - at - w->offset[t], w->hi - at - w->offset[t]);
    }
#define ALONG(row, v) \
    add_row_taps(kind, wide_zero(), 0, (row) + (v) * width, taps, offset, masked ? some : NULL)
    if (shares)
        for (int k = 0; k < kernel - 1; k++)
            for (int v = 0; v < vectors; v++) kept[k][v] = ALONG(rows[k], v);
    if (shares && kernel == 3)
        for (; r + 2 <= count; r += 2, to += 2 * y->pitch)
            for (int v = 0; v < vectors; v++) {
                vec_t a = ALONG(rows[r + 2], v), b = ALONG(rows[r + 3], v);
                vec_t both = add_sums(kind, kept[1][v], a);
                store_sums(kind, y, to + v * VEC_BYTES, add_sums(kind, kept[0][v], both), by[v]);
                store_sums(kind, y, to + v * VEC_BYTES + y->pitch, add_sums(kind, both, b), by[v]);
                kept[0][v] = a, kept[1][v] = b;
            }
    /* Two rows read what they share once. */
    if (in_order && kernel == 3 && stride == 1 && taps == 3 && w->slabs == 1 && w->dilation == 1)
        for (; r + 2 <= count; r += 2, to += 2 * y->pitch)
            for (int v = 0; v < vectors; v++) {
                vec_t sum = wide_zero(), next = sum;
                for (ptrdiff_t k = 0; k < 4; k++)
                    for (ptrdiff_t t = 0; t < taps; t++) {
                        vec_t x = add_row_taps(kind, sum, 0, rows[r + k] + v * width, 1, offset + t,
                                               masked ? some + t : NULL);
                        if (k < 3) sum = k || t ? add_sums(kind, sum, x) : x;
                        if (k > 0) next = k > 1 || t ? add_sums(kind, next, x) : x;
                    }
                store_sums(kind, y, to + v * VEC_BYTES, sum, by[v]);
                store_sums(kind, y, to + v * VEC_BYTES + y->pitch, next, by[v]);
            }
    if (!shares) {
        vec_t sums[4];
        if (at_once > 1)
            for (; r + at_once <= count; r += at_once, to += at_once * y->pitch) {
                add_windows(kind, w, rows + r * stride, sums, at_once, vectors, kernel, stride,
                            taps, offset, masked ? some : NULL);
                for (int i = 0; i < at_once * vectors; i++)
                    store_sums(kind, y, to + i / vectors * y->pitch + i % vectors * VEC_BYTES,
                               sums[i], by[i % vectors]);
            }
        for (; r < count; r++, to += y->pitch) {
            add_windows(kind, w, rows + r * stride, sums, 1, vectors, kernel, stride, taps, offset,
                        masked ? some : NULL);
            for (int v = 0; v < vectors; v++)
                store_sums(kind, y, to + v * VEC_BYTES, sums[v], by[v]);
        }
        return;
    }
    for (; r < count; r++, to += y->pitch)
        for (int v = 0; v < vectors; v++) {
            const char *const *at_row = rows + r * stride;
            vec_t sum;
            if (kernel == 2) {
                vec_t a = ALONG(at_row[1], v);
                sum = add_sums(kind, kept[0][v], a);
                kept[0][v] = a;
            } else {
                vec_t a = ALONG(at_row[2], v);
                sum = add_sums(kind, add_sums(kind, kept[0][v], kept[1][v]), a);
                kept[0][v] = kept[1][v], kept[1][v] = a;
            }
            store_sums(kind, y, to + v * VEC_BYTES, sum, by[v]);
        }
#undef ALONG
}

/* Pool windows of two taps side by side, without padding, where they begin at every second element.
 * The pairs of a row are read where they are. Rows of large planes are read in the order of memory:
 * 1x176x132x110 k2 s2 takes half the time of strips down the rows (AVX2). */
INLINE void pool_pairs(int kind, const small_windows_t *w, ptrdiff_t n, ptrdiff_t count,
                       const small_results_t *y, ptrdiff_t kernel, ptrdiff_t stride) {
    const ptrdiff_t lanes = sum_lanes(kind), item = row_item(kind), width = lanes * item;
    for (ptrdiff_t r = 0; r < count; r++)
        for (ptrdiff_t i = 0; i < n; i += lanes) {
            const char *const *rows = w->rows + r * stride;
            vec_t sum = {0}, by = {0};
            if (i + lanes > n) i = n - lanes; /* (n >= lanes) */
            if (y->by) by = divisors_at(kind, y, i);
            for (ptrdiff_t s = 0; s < w->slabs; s++, rows += w->slab)
                for (ptrdiff_t k = 0; k < kernel; k++) {
                    const char *p = rows[k * w->dilation] + 2 * i * item;
                    vec_t low = load_row(kind, p), high = load_row(kind, p + width), even, odd;
                    if (kind == FLOATS)
                        even = vec_concat_even_4(low, high), odd = vec_concat_odd_4(low, high);
                    else
                        even = vec_concat_even_8(low, high), odd = vec_concat_odd_8(low, high);
                    sum = add_sums(kind, add_sums(kind, sum, even), odd);
                }
            store_sums(kind, y, y->data + r * y->pitch + i * sum_item(kind), sum, by);
        }
}

/* Pool windows of one row, from output i on, four vectors at a time; before output `stop`, without
 * masks. Return the output after them. */
INLINE ptrdiff_t pool_lone_row(int kind, const small_windows_t *w, ptrdiff_t first, ptrdiff_t i,
                               ptrdiff_t stop, ptrdiff_t count, const small_results_t *y,
                               ptrdiff_t taps) {
    const ptrdiff_t lanes = sum_lanes(kind), item = row_item(kind);
    const ptrdiff_t after = i + (stop - i) / (4 * lanes) * 4 * lanes;
    for (ptrdiff_t r = 0; r < count; r++) {
        const char *p = w->rows[r * w->stride] + first * item;
        char *to = y->data + r * y->pitch;
        for (ptrdiff_t at = i; at < after; at += 4 * lanes) {
            vec_t sums[4] = {{0}, {0}, {0}, {0}};
            for (ptrdiff_t t = 0; t < taps; t++)
                for (int v = 0; v < 4; v++)
                    sums[v] = add_sums(
                        kind, sums[v], load_row(kind, p + (at + v * lanes + w->offset[t]) * item));
            for (ptrdiff_t v = 0; v < 4; v++)
                store_sums(kind, y, to + (at + v * lanes) * sum_item(kind), sums[v],
                           y->by ? divisors_at(kind, y, at + v * lanes) : sums[v]);
        }
    }
    return after;
}

/* Pool n neighbouring outputs of `count` rows; output i begins at element first + i.
 *
 * Strips have up to `most` vectors: more of them hide how long additions take, if each waits for
 * the one before. */
INLINE void pool_strips(int kind, int in_order, const small_windows_t *w, ptrdiff_t first,
                        ptrdiff_t n, ptrdiff_t count, const small_results_t *y, ptrdiff_t kernel,
                        ptrdiff_t stride, ptrdiff_t taps, int most) {
    const ptrdiff_t lanes = sum_lanes(kind), item = sum_item(kind);
    /* Where strips begin that need no mask. */
    const ptrdiff_t inner = w->lo - w->offset[0] - first;
    const ptrdiff_t outer = w->hi - w->offset[w->taps - 1] - first;
    const ptrdiff_t last = n < outer ? n : outer;
    vec_t by[4] = {{0}, {0}, {0}, {0}};
    if (y->by && y->one_divisor) by[0] = by[1] = by[2] = by[3] = divisors_at(kind, y, 0);
    for (ptrdiff_t i = 0; i < n;) {
        int vectors = 1;
        char *to;
        if (kernel == 1 && w->slabs == 1 && i >= inner && i + 4 * lanes <= last) {
            i = pool_lone_row(kind, w, first, i, last, count, y, taps);
            continue;
        }
        if (i >= inner && i + most * lanes <= last)
            vectors = most;
        else if (i >= inner && i + 2 * lanes <= last)
            vectors = 2;
        else if (i + lanes > n && n >= lanes)
            i = n - lanes; /* (some are made again) */
        to = y->data + i * item;
        if (y->by && !y->one_divisor)
            for (int v = 0; v < vectors; v++) by[v] = divisors_at(kind, y, i + v * lanes);
        if (most > 2 && vectors == most)
            pool_strip(kind, in_order, w, first + i, count, y, to, by, most, 0, kernel, stride,
                       taps, most);
        else if (vectors == 2)
            pool_strip(kind, in_order, w, first + i, count, y, to, by, 2, 0, kernel, stride, taps,
                       most);
        else if (!MASKED_ROWS || (i >= inner && i + lanes <= outer))
            pool_strip(kind, in_order, w, first + i, count, y, to, by, 1, 0, kernel, stride, taps,
                       most);
        else
            pool_strip(kind, in_order, w, first + i, count, y, to, by, 1, 1, kernel, stride, taps,
                       most);
        i += vectors * lanes;
    }
}

#define DEFINE_POOL_EXACT(name, kind)                                                             \
    static void pool_small_##name(const small_windows_t *w, ptrdiff_t first, ptrdiff_t n,         \
                                  ptrdiff_t count, const small_results_t *y) {                    \
        const int one = w->slabs == 1 && w->dilation == 1;                                        \
        if (one && w->kernel == 3 && w->taps == 3 && w->stride == 1)                              \
            pool_strips(kind, 0, w, first, n, count, y, 3, 1, 3, 2);                              \
        else if (one && w->kernel == 2 && w->taps == 2 && w->stride == 1)                         \
            pool_strips(kind, 0, w, first, n, count, y, 2, 1, 2, 2);                              \
        else if (one && w->kernel == 3 && w->stride == 1)                                         \
            pool_strips(kind, 0, w, first, n, count, y, 3, 1, w->taps, 2);                        \
        else                                                                                      \
            pool_strips(kind, 1, w, first, n, count, y, w->kernel, w->stride, w->taps, 4);        \
    }
DEFINE_POOL_EXACT(exact, FLOATS_IN_DOUBLE) DEFINE_POOL_EXACT(doubles, DOUBLES)

#define DEFINE_POOL_IN_ORDER(name, kind)                                                          \
    static void pool_small_##name(const small_windows_t *w, ptrdiff_t first, ptrdiff_t n,         \
                                  ptrdiff_t count, const small_results_t *y) {                    \
        const int one = w->slabs == 1 && w->dilation == 1;                                        \
        if (w->pairs && w->kernel == 2 && w->stride == 2 && w->slabs == 1)                        \
            pool_pairs(kind, w, n, count, y, 2, 2);                                               \
        else if (w->pairs)                                                                        \
            pool_pairs(kind, w, n, count, y, w->kernel, w->stride);                               \
        else if (one && w->kernel == 1 && w->stride == 1 && w->taps == 2)                         \
            pool_strips(kind, 1, w, first, n, count, y, 1, 1, 2, 4);                              \
        else if (one && w->kernel == 1 && w->stride == 1 && w->taps == 3)                         \
            pool_strips(kind, 1, w, first, n, count, y, 1, 1, 3, 4);                              \
        else if (one && w->kernel == 3 && w->taps == 3 && w->stride == 1)                         \
            pool_strips(kind, 1, w, first, n, count, y, 3, 1, 3, 2);                              \
        else if (one && w->kernel == 3 && w->taps == 3 && w->stride == 2)                         \
            pool_strips(kind, 1, w, first, n, count, y, 3, 2, 3, 2);                              \
        else if (one && w->kernel == 2 && w->taps == 2 && w->stride == 2)                         \
            pool_strips(kind, 1, w, first, n, count, y, 2, 2, 2, 2);                              \
        else if (one && w->kernel == 2 && w->taps == 2 && w->stride == 1)                         \
            pool_strips(kind, 1, w, first, n, count, y, 2, 1, 2, 2);                              \
        else if (one && w->kernel == 3 && w->stride == 1)                                         \
            pool_strips(kind, 1, w, first, n, count, y, 3, 1, w->taps, 2);                        \
        else                                                                                      \
            pool_strips(kind, 1, w, first, n, count, y, w->kernel, w->stride, w->taps, 4);        \
    }
DEFINE_POOL_IN_ORDER(floats_in_order, FLOATS) DEFINE_POOL_IN_ORDER(doubles_in_order, DOUBLES)

#endif
