/* Sums in pairs: taps along an axis are added by a tree of one shape. Its halves are added by
 * trees of their own, and the odd tap comes last. All vectors and all builds keep that order.
 *
 * Where there are fused operations, sums are divided by two of them. The reciprocal of a divisor is
 * high + low, each rounded, and a quotient is sum * high + sum * low. Of p bits its error is less
 * than 2**(2 - 2p) of it. A sum of p bits divided by an integer d is never in the middle of two
 * results, and at least 2**(-1 - p) / d of it away from one. So it is the quotient, rounded once,
 * if d is at most MOST_QUICK_DIVISOR. Infinities and results near underflow may be wrong. They
 * raise flags, and then sums are made again, and divided. */
#ifndef FASTPOOL_PAIRWISE_H
#define FASTPOOL_PAIRWISE_H

#include "convert.h"
#include "loops.h"
#include "quick_quotients.h"
#include "transpose.h"

#define ALIGNED_ROW 32 /* vectors, from which these are aligned, at least */
#define MOST_LEAF 7 /* taps of a tree that stays in registers */
#define TREE_COLUMNS 128 /* of vectors that stay in the first-level cache */
#define MOST_QUICK_DIVISOR (1 << 18)
#define FEW_QUOTIENTS 64 /* reading flags takes longer than dividing these */
enum { NO_DIVISION, ONE_DIVISOR, DIVISORS_OF_COLUMNS };

/* Rows of sums: number (r, i) is the tree of taps[0..count][r * step + i * stride], divided. */
typedef struct {
    void *to;
    ptrdiff_t pitch; /* from one row of sums to the next */
    const void *taps[MOST_LEAF];
    int count;
    ptrdiff_t step, last_step; /* from one row of taps to the next; of the last tap */
    int stride;                /* 1 or 2 */
    ptrdiff_t rows, width;
    int has_room; /* for a vector after each row, which gets zeros */
    int division;
    const void *by;         /* divisors: one, or of each column */
    const void *high, *low; /* parts of their reciprocals, or NULL */
} pairs_of_t;

/* Set the parts of the reciprocals of n divisors. Return whether all are small enough for them. */
#if HAS_FMA
#define DEFINE_PAIR_RECIPROCALS(name, T, FMA)                                                     \
    static VECTORISED int set_pair_reciprocals_##name(const T *by, T *high, T *low, ptrdiff_t n) {\
        int quick = 1;                                                                            \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            high[i] = 1 / by[i];                                                                  \
            low[i] = FMA(-high[i], by[i], 1) * high[i];                                           \
            quick &= by[i] <= MOST_QUICK_DIVISOR && by[i] >= -MOST_QUICK_DIVISOR;                 \
        }                                                                                         \
        return quick;                                                                             \
    }
#else
#define DEFINE_PAIR_RECIPROCALS(name, T, FMA)                                                     \
    static VECTORISED int set_pair_reciprocals_##name(const T *by, T *high, T *low, ptrdiff_t n) {\
        (void)by, (void)high, (void)low, (void)n;                                                 \
        return 1; /* (divisors do) */                                                             \
    }
#endif
DEFINE_PAIR_RECIPROCALS(f32, float, __builtin_fmaf)
DEFINE_PAIR_RECIPROCALS(f64, double, __builtin_fma)

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

/* Load the lanes of p[i], ... whose places are from 0 to n; the others are 0. */
#if VEC_BYTES == 64
INLINE uint32_t lanes_within(ptrdiff_t i, ptrdiff_t n, int lanes) {
    const ptrdiff_t lo = i < 0 ? -i : 0, hi = n - i < lanes ? n - i : lanes;
    return lo < hi ? ((1u << hi) - 1) & ~((1u << lo) - 1) : 0;
}
typedef __mmask16 lanes_f32;
typedef __mmask8 lanes_f64;
#define lanes_within_f32(i, n) (lanes_f32)lanes_within(i, n, 16)
#define lanes_within_f64(i, n) (lanes_f64)lanes_within(i, n, 8)
#define load_lanes_f32(p, lanes) (vec_f32)_mm512_maskz_loadu_ps(lanes, p)
#define load_lanes_f64(p, lanes) (vec_f64)_mm512_maskz_loadu_pd(lanes, p)
#elif VEC_BYTES == 32
typedef __m256i lanes_f32, lanes_f64;
INLINE lanes_f32 lanes_within_f32(ptrdiff_t i, ptrdiff_t n) {
    const __m256i at = _mm256_add_epi32(_mm256_set1_epi32((int)i),
                                        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_andnot_si256(at, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), at));
}
INLINE lanes_f64 lanes_within_f64(ptrdiff_t i, ptrdiff_t n) {
    const __m256i at = _mm256_add_epi64(_mm256_set1_epi64x(i), _mm256_setr_epi64x(0, 1, 2, 3));
    return _mm256_andnot_si256(at, _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), at));
}
/* (Of a mask the highest bit of a lane counts.) */
#define load_lanes_f32(p, lanes) (vec_f32)_mm256_maskload_ps(p, lanes)
#define load_lanes_f64(p, lanes) (vec_f64)_mm256_maskload_pd(p, lanes)
#else
typedef struct {
    ptrdiff_t lo, hi;
} lanes_f32, lanes_f64;
#define DEFINE_LOAD_LANES(name, T)                                                                \
    INLINE lanes_##name lanes_within_##name(ptrdiff_t i, ptrdiff_t n) {                           \
        return (lanes_##name){-i, n - i};                                                         \
    }                                                                                             \
    INLINE vec_##name load_lanes_##name(const T *p, lanes_##name within) {                        \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        vec_##name v = {0};                                                                       \
        if (within.lo <= 0 && within.hi >= lanes) return (vec_##name)vec_load(p);                 \
        for (ptrdiff_t j = 0; j < lanes; j++)                                                     \
            if (j >= within.lo && j < within.hi) v[j] = p[j];                                     \
        return v;                                                                                 \
    }
DEFINE_LOAD_LANES(f32, float)
DEFINE_LOAD_LANES(f64, double)
#endif
#define load_within_f32(p, i, n) load_lanes_f32((p) + (i), lanes_within_f32(i, n))
#define load_within_f64(p, i, n) load_lanes_f64((p) + (i), lanes_within_f64(i, n))
#define load_first_f32(p, n) load_within_f32(p, 0, n)
#define load_first_f64(p, n) load_within_f64(p, 0, n)

/* Load the first n lanes, at most half: 64 bytes that are not aligned are in two cache lines. */
#if VEC_BYTES == 64
INLINE vec_f32 load_half_f32(const float *p, ptrdiff_t n) {
    return (vec_f32)_mm512_zextps256_ps512(_mm256_maskz_loadu_ps((__mmask8)((1u << n) - 1), p));
}
INLINE vec_f64 load_half_f64(const double *p, ptrdiff_t n) {
    return (vec_f64)_mm512_zextpd256_pd512(_mm256_maskz_loadu_pd((__mmask8)((1u << n) - 1), p));
}
#else
#define load_half_f32 load_first_f32
#define load_half_f64 load_first_f64
#endif

/* Store the first n lanes of a vector. */
#if VEC_BYTES == 32
INLINE void store_first_f32(float *p, vec_f32 v, ptrdiff_t n) {
    const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), at), (__m256)v);
}
INLINE void store_first_f64(double *p, vec_f64 v, ptrdiff_t n) {
    const __m256i at = _mm256_setr_epi64x(0, 1, 2, 3);
    _mm256_maskstore_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), at), (__m256d)v);
}
#else
#define store_first_f32(p, v, n) vec_store_part(p, (vec_t)(v), (size_t)(n) * 4)
#define store_first_f64(p, v, n) vec_store_part(p, (vec_t)(v), (size_t)(n) * 8)
#endif

/* Load or store at least one lane; there may be more than a vector. */
#define DEFINE_UP_TO(name, T)                                                                     \
    INLINE vec_##name load_up_to_##name(const T *p, ptrdiff_t n) {                                \
        return n < VEC_BYTES / (ptrdiff_t)sizeof(T) ? load_first_##name(p, n)                     \
                                                    : (vec_##name)vec_load(p);                    \
    }                                                                                             \
    INLINE void store_up_to_##name(T *p, vec_##name v, ptrdiff_t n) {                             \
        if (n < VEC_BYTES / (ptrdiff_t)sizeof(T))                                                 \
            store_first_##name(p, v, n);                                                          \
        else                                                                                      \
            vec_store(p, (vec_t)v);                                                               \
    }
DEFINE_UP_TO(f32, float)
DEFINE_UP_TO(f64, double)

/* Divide a vector by `by`, whose reciprocal is high + low. */
#if HAS_FMA
#define QUOTIENT(name, sum, by, high, low) MULTIPLY_ADD_##name(sum, high, (sum) * (low))
#else
#define QUOTIENT(name, sum, by, high, low) ((sum) / (by))
#endif
#define COLUMNS_OF(name, p) (vec_##name)vec_load((p) + (i & each))
#define FIRST_COLUMNS_OF(name, p) load_first_##name(p, n)
#define DIVIDED(name, LOAD)                                                                       \
    if (division) sum = QUOTIENT(name, sum, LOAD(name, by), LOAD(name, high), LOAD(name, low));

/* Make vectors of one divisor and its reciprocal, if `each` is 0. */
#define SPREAD(name, T)                                                                           \
    vec_##name same[3];                                                                           \
    if (!each) {                                                                                  \
        same[0] = zero + by[0], by = (const T *)&same[0];                                         \
        if (HAS_FMA) same[1] = zero + high[0], high = (const T *)&same[1];                        \
        if (HAS_FMA) same[2] = zero + low[0], low = (const T *)&same[2];                          \
    }                                                                                             \
    (void)by, (void)high, (void)low;

/* The first vector of a row overlaps the second, unless the row is shorter than a vector. */
#define DEFINE_ADD_IN_PAIRS(name, T)                                                              \
    INLINE void add_rows_of_##name(const pairs_of_t *a, const int count, const int stride,        \
                                   const int division) {                                          \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), n = a->width, last = n - lanes; \
        const ptrdiff_t each = a->division == ONE_DIVISOR ? 0 : -1;                               \
        const T *by = (const T *)a->by, *high = (const T *)a->high, *low = (const T *)a->low;     \
        const vec_##name zero = {0};                                                              \
        SPREAD(name, T)                                                                           \
        for (ptrdiff_t r = 0; r < a->rows; r++) {                                                 \
            T *to = (T *)a->to + r * a->pitch;                                                    \
            const T *p[MOST_LEAF]; /* (made from the row: a chain of additions takes longer) */   \
            for (int t = 0; t < count; t++)                                                       \
                p[t] = (const T *)a->taps[t] + r * (t < count - 1 ? a->step : a->last_step);      \
            if (last < 0) {                                                                       \
                vec_##name sum = zero;                                                            \
                if (stride == 1 && !division && VEC_BYTES == 64 && 2 * n <= lanes)                \
                    sum = TREE(count, HALF_##name);                                               \
                else if (stride == 1)                                                             \
                    sum = TREE(count, FIRST_##name);                                              \
                else                                                                              \
                    for (ptrdiff_t i = 0; i < n; i++) sum[i] = TREE(count, ONE_ELEMENT);          \
                DIVIDED(name, FIRST_COLUMNS_OF)                                                   \
                if (a->has_room) /* (masked stores take 20 cycles on Zen) */                      \
                    vec_store(to, (vec_t)sum);                                                    \
                else                                                                              \
                    store_first_##name(to, sum, n);                                               \
                continue;                                                                         \
            }                                                                                     \
            /* (A vector at a time from 0 would need a choice in each step.) */                   \
            for (ptrdiff_t i = 0, next = last % lanes ? last % lanes : lanes; i <= last;          \
                 next += lanes) {                                                                 \
                vec_##name sum = stride == 1 ? TREE(count, ONE_VECTOR_##name)                     \
                                             : TREE(count, EVEN_VECTOR_##name);                   \
                DIVIDED(name, COLUMNS_OF)                                                         \
                vec_store(to + i, (vec_t)sum);                                                    \
                i = next;                                                                         \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    INLINE void add_strided_##name(const pairs_of_t *a, const int count, const int stride) {      \
        if (a->division == NO_DIVISION)                                                           \
            add_rows_of_##name(a, count, stride, 0);                                              \
        else                                                                                      \
            add_rows_of_##name(a, count, stride, 1);                                              \
    }                                                                                             \
    INLINE void add_divided_##name(const pairs_of_t *a, const int count) {                        \
        if (a->stride == 1)                                                                       \
            add_strided_##name(a, count, 1);                                                      \
        else                                                                                      \
            add_strided_##name(a, count, 2);                                                      \
    }                                                                                             \
    static NOINLINE void add_counted_##name(const pairs_of_t *a) {                                \
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
    /* Add long rows by aligned vectors, which lie in one cache line each: float32 1x7x7x1280,    \
     * channels last, 3.55 -> 2.72 us. The first and the last one of a row overlap them. (Sums    \
     * in place are scratch, which is aligned.) Return 0 if not all rows have such vectors, or    \
     * if all are aligned as they are. */                                                         \
    static int add_aligned_##name(const pairs_of_t *a) {                                          \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), n = a->width;                   \
        const ptrdiff_t off = (ptrdiff_t)((uintptr_t)a->taps[0] % VEC_BYTES / sizeof(T));         \
        const ptrdiff_t from[3] = {0, lanes - off, n - lanes};                                    \
        const ptrdiff_t widths[3] = {lanes, (n - from[1]) / lanes * lanes, lanes};                \
        if (off == 0 || a->stride > 1) return 0;                                                  \
        if (a->rows > 1 && (a->step % lanes || a->last_step % lanes)) return 0;                   \
        for (int t = 1; t < a->count; t++)                                                        \
            if (((uintptr_t)a->taps[t] - (uintptr_t)a->taps[0]) % VEC_BYTES) return 0;            \
        for (int i = 0; i < 3; i++) {                                                             \
            pairs_of_t part = *a;                                                                 \
            part.to = (T *)a->to + from[i], part.width = widths[i];                               \
            for (int t = 0; t < a->count; t++) part.taps[t] = (const T *)a->taps[t] + from[i];    \
            add_counted_##name(&part);                                                            \
        }                                                                                         \
        return 1;                                                                                 \
    }                                                                                             \
    static VECTORISED void divide_columns_##name(T *to, const T *by, ptrdiff_t n) {               \
        for (ptrdiff_t i = 0; i < n; i++) to[i] /= by[i];                                         \
    }                                                                                             \
    static VECTORISED void divide_by_one_##name(T *to, T by, ptrdiff_t n) {                       \
        for (ptrdiff_t i = 0; i < n; i++) to[i] /= by;                                            \
    }                                                                                             \
    static void add_in_pairs_##name(const pairs_of_t *a) {                                        \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        const T *by = (const T *)a->by;                                                           \
        pairs_of_t sums = *a;                                                                     \
        if (a->division == NO_DIVISION && a->width >= ALIGNED_ROW * lanes &&                      \
            add_aligned_##name(a))                                                                \
            return;                                                                               \
        if (a->division == NO_DIVISION || !HAS_FMA) {                                             \
            add_counted_##name(a);                                                                \
            return;                                                                               \
        }                                                                                         \
        if (a->high != NULL && a->rows * a->width >= FEW_QUOTIENTS) {                             \
            fp_clear();                                                                           \
            add_counted_##name(a);                                                                \
            if (!fp_unsure()) return;                                                             \
        }                                                                                         \
        sums.division = NO_DIVISION;                                                              \
        add_counted_##name(&sums);                                                                \
        for (ptrdiff_t r = 0; r < a->rows; r++) {                                                 \
            T *to = (T *)a->to + r * a->pitch;                                                    \
            if (a->division == ONE_DIVISOR)                                                       \
                divide_by_one_##name(to, by[0], a->width);                                        \
            else                                                                                  \
                divide_columns_##name(to, by, a->width);                                          \
        }                                                                                         \
    }                                                                                             \
    /* Add rows of n sums to others. */                                                           \
    static void add_to_##name(T *to, const T *sums, ptrdiff_t n, ptrdiff_t rows,                  \
                              ptrdiff_t pitch) {                                                  \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        for (; rows > 0; rows--, to += pitch, sums += pitch)                                      \
            for (ptrdiff_t i = 0; i < n; i += lanes)                                              \
                store_up_to_##name(to + i, load_up_to_##name(to + i, n - i) +                     \
                                              load_up_to_##name(sums + i, n - i), n - i);         \
    }                                                                                             \
    /* Copy n numbers, NaN as 0; `nans` gets 1 for these. Return whether there was one. */        \
    static int take_nans_##name(T *to, const T *p, T *nans, ptrdiff_t n) {                        \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        const vec_##name one = (vec_##name){0} + 1;                                               \
        vec_t any = {0};                                                                          \
        for (ptrdiff_t i = 0; i < n; i += lanes) {                                                \
            const vec_##name v = load_up_to_##name(p + i, n - i);                                 \
            const vec_t nan = (vec_t)(v != v);                                                    \
            store_up_to_##name(to + i, (vec_##name)(~nan & (vec_t)v), n - i);                     \
            store_up_to_##name(nans + i, (vec_##name)(nan & (vec_t)one), n - i);                  \
            any |= nan;                                                                           \
        }                                                                                         \
        return vec_any(any);                                                                      \
    }

/* Set sums to the trees of rows of taps: these are transposed, so that a vector has a tap of each
 * row. Leaf i of a tree ends as many halves as i has ones at its end. `has_room`: a vector may be
 * read after a row. */
#define DEFINE_ADD_ROW_TREES(name, T)                                                             \
    INLINE vec_##name tree_of_columns_##name(const vec_##name *x, ptrdiff_t step,                 \
                                             ptrdiff_t taps) {                                    \
        vec_##name parts[8], sum = {0};                                                           \
        int shift = 0;                                                                            \
        while (taps >> shift > MOST_LEAF) shift++;                                                \
        const int leaf = (int)(taps >> shift);                                                    \
        for (int i = 0; i < 1 << shift; i++) {                                                    \
            int k = 0;                                                                            \
            sum = TREE(leaf, IN_TURN);                                                            \
            x += leaf * step;                                                                     \
            for (; i >> k & 1; k++) {                                                             \
                sum = parts[k] + sum;                                                             \
                if (taps >> (shift - k - 1) & 1) sum += *x, x += step;                            \
            }                                                                                     \
            parts[k] = sum;                                                                       \
        }                                                                                         \
        return sum;                                                                               \
    }                                                                                             \
    static vec_##name tree_of_rows_##name(vec_##name *columns, const T *from, ptrdiff_t pitch,    \
                                          ptrdiff_t rows, ptrdiff_t taps, int has_room) {         \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), half = taps / 2;                \
        if (taps > TREE_COLUMNS) {                                                                \
            vec_##name sum = tree_of_rows_##name(columns, from, pitch, rows, half, 1);            \
            sum += tree_of_rows_##name(columns, from + half, pitch, rows, half, has_room);        \
            if (taps % 2)                                                                         \
                sum += tree_of_rows_##name(columns, from + taps - 1, pitch, rows, 1, has_room);   \
            return sum;                                                                           \
        }                                                                                         \
        transpose(columns, lanes, from, pitch, rows < lanes ? rows : lanes,                       \
                  has_room ? (taps + lanes - 1) / lanes * lanes : taps, sizeof(T));               \
        return tree_of_columns_##name(columns, 1, taps);                                          \
    }                                                                                             \
    static void add_row_trees_##name(T *to, const T *from, ptrdiff_t pitch, ptrdiff_t rows,       \
                                     ptrdiff_t taps, int has_room) {                              \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        const ptrdiff_t n = has_room ? (taps + lanes - 1) / lanes * lanes : taps;                 \
        vec_##name columns[TREE_COLUMNS];                                                         \
        if (rows < lanes) /* (other lanes raise no flags) */                                      \
            memset(columns, 0, (size_t)(n < TREE_COLUMNS ? n : TREE_COLUMNS) * VEC_BYTES);        \
        for (ptrdiff_t r = 0, some = 1; r < rows; r += some * lanes) {                            \
            if (r > 0 && r > rows - lanes) r = rows - lanes;                                      \
            some = (rows - r) / lanes < TREE_COLUMNS / n ? (rows - r) / lanes : TREE_COLUMNS / n; \
            if (some < 2) {                                                                       \
                some = 1;                                                                         \
                store_up_to_##name(to + r, tree_of_rows_##name(columns, from + r * pitch, pitch,  \
                                                               rows, taps, has_room), rows - r);  \
                continue;                                                                         \
            }                                                                                     \
            transpose(columns, some * lanes, from + r * pitch, pitch, some * lanes, n, sizeof(T));\
            for (ptrdiff_t i = 0; i < some; i++)                                                  \
                vec_store(to + r + i * lanes,                                                     \
                          (vec_t)tree_of_columns_##name(columns + i, some, taps));                \
        }                                                                                         \
    }
#define IN_TURN(t) x[(t) * step]
DEFINE_ADD_ROW_TREES(f32, float)
DEFINE_ADD_ROW_TREES(f64, double)

/* Divide n sums by `by` less the number of NaN, unless `fixed`. Sums of NaN alone become NaN.
 * `taps` and `by` are one number, or one of each sum. */
#define DEFINE_DIVIDE_SOME(name, T)                                                               \
    static void divide_some_##name##_##name(T *sums, const T *nans, const T *taps, const T *by,   \
                                            int one, int fixed, ptrdiff_t n) {                    \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        const vec_##name zero = {0}, unit = zero + 1;                                             \
        for (ptrdiff_t i = 0; i < n; i += lanes) {                                                \
            vec_##name none = load_up_to_##name(nans + i, n - i);                                 \
            vec_##name all = one ? zero + taps[0] : load_up_to_##name(taps + i, n - i);           \
            vec_##name d = one ? zero + by[0] : load_up_to_##name(by + i, n - i);                 \
            if (!fixed) d -= none;                                                                \
            d = (vec_##name)((vec_t)d | ((vec_t)(d == zero) & (vec_t)unit));                      \
            vec_t empty = (vec_t)(none == all) & (vec_t)(none > zero);                            \
            d = load_up_to_##name(sums + i, n - i) / d;                                           \
            store_up_to_##name(sums + i, (vec_##name)((vec_t)d | empty), n - i);                  \
        }                                                                                         \
    }
DEFINE_DIVIDE_SOME(f32, float)
DEFINE_DIVIDE_SOME(f64, double)
/* The numbers of NaN are doubles if floats do not hold them all. */
static void divide_some_f32_f64(float *sums, const double *nans, const double *taps,
                                const double *by, int one, int fixed, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) {
        const double all = taps[one ? 0 : i], count = by[one ? 0 : i], none = nans[i];
        const float d = (float)(fixed ? count : count - none);
        sums[i] = none > 0 && none == all ? NAN : sums[i] / (d == 0 ? 1 : d);
    }
}

/* Leave NaN out of n exact sums and of what divides them. `reciprocals` has the taps at first. */
static void leave_nans_out(double *sums, double *by, double *reciprocals, const double *nans,
                           int fixed, ptrdiff_t n) {
    const vec_f64 zero = {0}, unit = zero + 1;
    for (ptrdiff_t i = 0; i < n; i += VEC_BYTES / 8) {
        const vec_f64 none = load_up_to_f64(nans + i, n - i);
        const vec_f64 taps = load_up_to_f64(reciprocals + i, n - i);
        const vec_t empty = (vec_t)(none == taps) & (vec_t)(none > zero);
        const vec_f64 sum = load_up_to_f64(sums + i, n - i);
        const vec_f64 d = load_up_to_f64(by + i, n - i) - (fixed ? zero : none);
        const vec_t no_divisor = (vec_t)(d == zero);
        store_up_to_f64(sums + i, (vec_f64)((vec_t)sum | empty), n - i);
        store_up_to_f64(by + i, d, n - i);
        store_up_to_f64(reciprocals + i,
                       (vec_f64)((vec_t)(unit / (vec_f64)((vec_t)d | (no_divisor & (vec_t)unit))) &
                                 ~no_divisor), n - i);
    }
}
#define ONE_ELEMENT(t) p[t][i * stride]
#define FIRST_f32(t) load_first_f32(p[t], n)
#define FIRST_f64(t) load_first_f64(p[t], n)
#define HALF_f32(t) load_half_f32(p[t], n)
#define HALF_f64(t) load_half_f64(p[t], n)
#define ONE_VECTOR_f32(t) (vec_f32)vec_load(p[t] + i)
#define ONE_VECTOR_f64(t) (vec_f64)vec_load(p[t] + i)
#define EVEN_OF(t) vec_concat_even(vec_load(p[t] + 2 * i), vec_load(p[t] + 2 * i + lanes), p[t])
#define EVEN_VECTOR_f32(t) (vec_f32)EVEN_OF(t)
#define EVEN_VECTOR_f64(t) (vec_f64)EVEN_OF(t)
DEFINE_ADD_IN_PAIRS(f32, float)
DEFINE_ADD_IN_PAIRS(f64, double)

/* ---- elements of other types, converted on the way ---- */

#define DEFINE_ADD_CONVERTED(sum, T, element, S, LOAD, SUM, ONE)                                  \
    INLINE void add_converted_rows_##sum##_of_##element(const pairs_of_t *a, const int count) {   \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), n = a->width, last = n - lanes; \
        for (ptrdiff_t r = 0; r < a->rows; r++) {                                                 \
            T *to = (T *)a->to + r * a->pitch;                                                    \
            const S *p[MOST_LEAF];                                                                \
            for (int t = 0; t < count; t++) p[t] = (const S *)a->taps[t] + r * a->step;           \
            for (ptrdiff_t i = 0, next = last % lanes ? last % lanes : lanes; i <= last;          \
                 next += lanes) {                                                                 \
                vec_store(to + i, SUM(TREE(count, LOAD)));                                        \
                i = next;                                                                         \
            }                                                                                     \
            for (ptrdiff_t i = 0; last < 0 && i < n; i++) to[i] = TREE(count, ONE);               \
        }                                                                                         \
    }                                                                                             \
    static NOINLINE void add_##sum##_of_##element(const pairs_of_t *a) {                          \
        switch (a->count) {                                                                       \
        case 1: add_converted_rows_##sum##_of_##element(a, 1); break;                             \
        case 2: add_converted_rows_##sum##_of_##element(a, 2); break;                             \
        case 3: add_converted_rows_##sum##_of_##element(a, 3); break;                             \
        case 4: add_converted_rows_##sum##_of_##element(a, 4); break;                             \
        case 5: add_converted_rows_##sum##_of_##element(a, 5); break;                             \
        case 6: add_converted_rows_##sum##_of_##element(a, 6); break;                             \
        default: add_converted_rows_##sum##_of_##element(a, 7);                                   \
        }                                                                                         \
    }
#define WIDE_F32(t) (vec_f64)wide_f32(p[t] + i)
#define WIDE_F16(t) (vec_f64)wide_f16(p[t] + i)
#define WIDE_BF16(t) (vec_f64)wide_bf16(p[t] + i)
#define WIDE_I16(t) (vec_f64)wide_i16(p[t] + i)
#define WIDE_U16(t) (vec_f64)wide_u16(p[t] + i)
#define WIDE_I32(t) (vec_f64)wide_i32(p[t] + i)
#define WIDE_U32(t) (vec_f64)wide_u32(p[t] + i)
#define AS_DOUBLE_f16(t) as_double_f16(p[t][i])
#define AS_DOUBLE_bf16(t) as_double_bf16(p[t][i])
#define AS_DOUBLE_NUMBER(t) (double)p[t][i]
DEFINE_ADD_CONVERTED(f64, double, f32, float, WIDE_F32, (vec_t), AS_DOUBLE_NUMBER)
DEFINE_ADD_CONVERTED(f64, double, f16, float16_t_, WIDE_F16, (vec_t), AS_DOUBLE_f16)
DEFINE_ADD_CONVERTED(f64, double, bf16, bfloat16_t_, WIDE_BF16, (vec_t), AS_DOUBLE_bf16)
DEFINE_ADD_CONVERTED(f64, double, i16, int16_t, WIDE_I16, (vec_t), AS_DOUBLE_NUMBER)
DEFINE_ADD_CONVERTED(f64, double, u16, uint16_t, WIDE_U16, (vec_t), AS_DOUBLE_NUMBER)
DEFINE_ADD_CONVERTED(f64, double, i32, int32_t, WIDE_I32, (vec_t), AS_DOUBLE_NUMBER)
DEFINE_ADD_CONVERTED(f64, double, u32, uint32_t, WIDE_U32, (vec_t), AS_DOUBLE_NUMBER)
#ifdef TO_FLOATS_LANES
#define FLOATS_F16(t) (vec_f32)floats_f16(p[t] + i)
#define FLOATS_BF16(t) (vec_f32)floats_bf16(p[t] + i)
#define SHORTS_I8(t) shorts_i8(p[t] + i)
#define SHORTS_U8(t) shorts_u8(p[t] + i)
#define FLOATS_I16(t) (vec_f32)floats_i16(p[t] + i)
#define FLOATS_U16(t) (vec_f32)floats_u16(p[t] + i)
#define AS_FLOAT_f16(t) (float)as_double_f16(p[t][i])
#define AS_FLOAT_bf16(t) (float)as_double_bf16(p[t][i])
#define AS_FLOAT_NUMBER(t) (float)p[t][i]
DEFINE_ADD_CONVERTED(f32, float, f16, float16_t_, FLOATS_F16, (vec_t), AS_FLOAT_f16)
DEFINE_ADD_CONVERTED(f32, float, bf16, bfloat16_t_, FLOATS_BF16, (vec_t), AS_FLOAT_bf16)
DEFINE_ADD_CONVERTED(f32, float, i8, int8_t, SHORTS_I8, floats_of_shorts, AS_FLOAT_NUMBER)
DEFINE_ADD_CONVERTED(f32, float, u8, uint8_t, SHORTS_U8, floats_of_shorts, AS_FLOAT_NUMBER)
DEFINE_ADD_CONVERTED(f32, float, i16, int16_t, FLOATS_I16, (vec_t), AS_FLOAT_NUMBER)
DEFINE_ADD_CONVERTED(f32, float, u16, uint16_t, FLOATS_U16, (vec_t), AS_FLOAT_NUMBER)
#endif
/* Add rows of elements of a type as floats or doubles, not divided, at a stride of 1. */
typedef void (*add_converted_t)(const pairs_of_t *);
static add_converted_t add_converted_of(int code, int in_doubles) {
    static const add_converted_t doubles[DTYPES] = {
        [F32] = add_f64_of_f32, [F16] = add_f64_of_f16, [BF16] = add_f64_of_bf16,
        [I16] = add_f64_of_i16, [U16] = add_f64_of_u16,
        [I32] = add_f64_of_i32, [U32] = add_f64_of_u32,
    };
    static const add_converted_t floats[DTYPES] = {
#ifdef TO_FLOATS_LANES
        [F16] = add_f32_of_f16, [BF16] = add_f32_of_bf16, [I8] = add_f32_of_i8,
        [U8] = add_f32_of_u8,   [I16] = add_f32_of_i16,   [U16] = add_f32_of_u16,
#endif
        [F32] = NULL,
    };
    return in_doubles ? doubles[code] : floats[code];
}

#define BY_SUM(f, p) _Generic(*(p), float: f##_f32, double: f##_f64)
#define add_in_pairs(a, tag) BY_SUM(add_in_pairs, tag)(a)
#define set_pair_reciprocals(by, high, low, n)                                                    \
    BY_SUM(set_pair_reciprocals, by)(by, high, low, n)
#define add_to(to, sums, n, rows, pitch) BY_SUM(add_to, to)(to, sums, n, rows, pitch)
#define add_row_trees(to, from, pitch, rows, taps, has_room)                                      \
    BY_SUM(add_row_trees, to)(to, from, pitch, rows, taps, has_room)
#define divide_some(sums, nans, taps, by, one, fixed, n) /* (of doubles, in double) */            \
    _Generic(*(sums), float: BY_SUM(divide_some_f32, nans), double: divide_some_f64_f64)          \
    (sums, (const void *)(nans), (const void *)(taps), (const void *)(by), one, fixed, n)
#define take_nans(to, p, nans, n) BY_SUM(take_nans, to)(to, p, nans, n)

#endif
