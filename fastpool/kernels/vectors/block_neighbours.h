/* What block_folds.h does with vectors of any keys: it combines neighbours, and makes results. */
#ifndef FASTPOOL_BLOCK_NEIGHBOURS_H
#define FASTPOOL_BLOCK_NEIGHBOURS_H

#include "block_types.h"
#include "byte_sums.h"
#include "pairwise.h"

/* Of blocks that are folded: the width, 8 times 7, its odd factor, and vectors of a row of blocks.
 * (Of neighbours past the last vector, MOST_ODD - 1 are read: 3 vectors, if these have 2 lanes.) */
enum { MOST_WIDTH = 56, MOST_ODD = 7, MOST_VECTORS = MOST_WIDTH + 3 };

#define GREATER_OF(a, b)                                                                          \
    (__typeof__(a))vec_max((vec_t)(a), (vec_t)(b), (__typeof__((a)[0]) *)0)
#define SUM_OF(a, b) ((a) + (b))
/* Combine neighbours of two vectors. */
#define NEIGHBOURS(op, a, b)                                                                      \
    op((__typeof__(a))vec_concat_even((vec_t)(a), (vec_t)(b), (__typeof__((a)[0]) *)0),           \
       (__typeof__(a))vec_concat_odd((vec_t)(a), (vec_t)(b), (__typeof__((a)[0]) *)0))

/* Of the first elements of groups of `odd` neighbours, in as many vectors: lane i of `order` tells
 * where that of group i is, and `from` which vector has one in lane i. */
typedef struct {
    vec_t order, from;
} odd_lanes_t;
#define DEFINE_ODD_LANES(L)                                                                       \
    static NOINLINE odd_lanes_t odd_lanes_##L(int odd) {                                          \
        const int lanes = VEC_BYTES * 8 / L;                                                      \
        uint##L##_t order[VEC_BYTES * 8 / L] = {0}, from[VEC_BYTES * 8 / L] = {0};                \
        if (odd > 1)                                                                              \
            ROLLED for (int i = 0, at = 0; i < lanes; i++, at += odd) {                           \
                order[i] = (uint##L##_t)(at & (lanes - 1));                                       \
                from[at & (lanes - 1)] = (uint##L##_t)(at / lanes);                               \
            }                                                                                     \
        return (odd_lanes_t){vec_load(order), vec_load(from)};                                    \
    }
DEFINE_ODD_LANES(8) DEFINE_ODD_LANES(16) DEFINE_ODD_LANES(32) DEFINE_ODD_LANES(64)

#if defined(__GNUC__) && !defined(__clang__)
#define SHUFFLED(v, order) __builtin_shuffle(v, order)
#else
#define SHUFFLED(v, order) ({                                                                     \
    __typeof__(v) to_;                                                                            \
    for (size_t i_ = 0; i_ < sizeof(v) / sizeof((v)[0]); i_++) to_[i_] = (v)[(order)[i_]];        \
    to_; })
#endif
#if VEC_BYTES == 64 /* (there are no such instructions for bytes) */
INLINE vec_u8 shuffled_8(vec_u8 v, vec_u8 order) {
    const vec_u16 even = (vec_u16)order & 0xff, odd = (vec_u16)order >> 8;
    const vec_u16 low = SHUFFLED((vec_u16)v, even >> 1) >> (even & 1) * 8 & 0xff;
    return (vec_u8)(low | SHUFFLED((vec_u16)v, odd >> 1) >> (odd & 1) * 8 << 8);
}
#else
INLINE vec_u8 shuffled_8(vec_u8 v, vec_u8 order) { return SHUFFLED(v, order); }
#endif
INLINE vec_u16 shuffled_16(vec_u16 v, vec_u16 order) { return SHUFFLED(v, order); }
INLINE vec_u32 shuffled_32(vec_u32 v, vec_u32 order) { return SHUFFLED(v, order); }
INLINE vec_u64 shuffled_64(vec_u64 v, vec_u64 order) { return SHUFFLED(v, order); }

/* Combine `odd` neighbours in rows of as many vectors, and then `pairs` vectors of these. Of what
 * is past the last vector, odd - 1 elements are read. */
#define DEFINE_COMBINED(name, T, L, op, COMBINED)                                                 \
    static NOINLINE vec_t name(void *row, int pairs, int odd, const odd_lanes_t *lanes) {         \
        typedef VECTOR(T, VEC_BYTES) typed;                                                       \
        typed *to = (typed *)row;                                                                 \
        const T *x = (const T *)row;                                                              \
        ROLLED for (int j = 0; odd > 1 && j < pairs; j++) {                                       \
            vec_u##L chosen = {0};                                                                \
            for (int i = 0; i < odd; i++, x += VEC_BYTES / sizeof(T)) {                           \
                typed v = (typed)vec_load(x);                                                     \
                const vec_u##L here = (vec_u##L)lanes->from == (uint##L##_t)i;                    \
                COMBINED                                                                          \
                chosen = SELECT(here, (vec_u##L)v, chosen);                                       \
            }                                                                                     \
            to[j] = (typed)shuffled_##L(chosen, (vec_u##L)lanes->order);                          \
        }                                                                                         \
        ROLLED for (int m = pairs; m > 1; m /= 2)                                                 \
            ROLLED for (int j = 0; j < m; j += 2) to[j / 2] = NEIGHBOURS(op, to[j], to[j + 1]);   \
        return (vec_t)to[0];                                                                      \
    }
#define IN_ORDER(op) ROLLED for (int t = 1; t < odd; t++) v = op(v, (typed)vec_load(x + t));
#define NEIGHBOUR(t) (typed)vec_load(x + t)
#define BY_A_TREE v = odd == 3   ? TREE_3(NEIGHBOUR)                                              \
                      : odd == 5 ? TREE_5(NEIGHBOUR)                                              \
                                 : TREE_7(NEIGHBOUR);
#define DEFINE_GREATEST_OF(T, L)                                                                  \
    DEFINE_COMBINED(greatest_##L, T, L, GREATER_OF, IN_ORDER(GREATER_OF))
#define DEFINE_SUM(T, L) DEFINE_COMBINED(sum_##L, T, L, SUM_OF, IN_ORDER(SUM_OF))
DEFINE_GREATEST_OF(int8_t, 8) DEFINE_GREATEST_OF(int16_t, 16)
DEFINE_GREATEST_OF(int32_t, 32) DEFINE_GREATEST_OF(int64_t, 64)
DEFINE_SUM(uint8_t, 8) DEFINE_SUM(uint16_t, 16) DEFINE_SUM(uint32_t, 32) DEFINE_SUM(uint64_t, 64)
DEFINE_COMBINED(sum_f32, float, 32, SUM_OF, BY_A_TREE)
DEFINE_COMBINED(sum_f64, double, 64, SUM_OF, BY_A_TREE)

/* Bytes as wide as keys. */
#if VEC_BYTES == 64
INLINE vec_t wide_bytes_32(const uint8_t *p) { return (vec_t)_mm512_cvtepu8_epi32(LOAD_BYTES(p)); }
INLINE vec_t wide_bytes_64(const uint8_t *p) {
    return (vec_t)_mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)p));
}
#else
#if VEC_BYTES == 32
INLINE vec_t wide_bytes_32(const uint8_t *p) { return (vec_t)_mm256_cvtepu8_epi32(LOAD_BYTES(p)); }
#else
INLINE vec_t wide_bytes_32(const uint8_t *p) {
    return (vec_t)(vec_u32){p[0], p[1], p[2], p[3]};
}
#endif
INLINE vec_t wide_bytes_64(const uint8_t *p) {
    vec_u64 v;
    for (size_t i = 0; i < VEC_BYTES / 8; i++) v[i] = p[i];
    return (vec_t)v;
}
#endif

/* ---- rows of outputs ---- */

/* The outputs from i on, a vector at a time. The last one may overlap that before it. */
#define EACH_VECTOR(lanes, n)                                                                     \
    for (ptrdiff_t i = 0, last = (n) - lanes, more = 1; more;                                     \
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

#endif
