/* Means of small integers whose windows share no column: neighbours are added in lanes of twice
 * their width, and the sums are shifted, which rounds them too. */
#ifndef FASTPOOL_FOLDS_H
#define FASTPOOL_FOLDS_H

#include "convert.h"
#include "loops.h"
#include "quotients.h"

enum { MOST_FOLDED = 128 }; /* taps of a window, whose sums twice the bits of an element hold */

typedef struct {
    void *to;
    const char *taps[MOST_FOLDED]; /* rows of elements, of which each output takes `width` */
    int count, width;              /* 2, 4 or 8 */
    ptrdiff_t n;                   /* outputs, of a vector at least */
    int shift, keep, add;          /* a quotient is (sum + add + (sum >> shift & keep)) >> shift */
    int flip;                      /* bits of elements and of results */
} folds_t;

/* Set how unsigned sums are divided by 2**shift. */
static void set_shift(folds_t *a, int shift, int rounding) {
    const int half = shift ? 1 << (shift - 1) : 0;
    a->shift = shift;
    a->keep = rounding == HALF_EVEN && shift;
    a->add = rounding <= HALF_AWAY ? half - a->keep : 0;
}

/* The low halves of all lanes of two vectors, as elements of the tag. */
#define LOW_HALVES(a, b, tag)                                                                     \
    (HIGH_HALF_FIRST ? vec_concat_odd((vec_t)(a), (vec_t)(b), tag)                                \
                     : vec_concat_even((vec_t)(a), (vec_t)(b), tag))
#define DEFINE_FOLD(name, bits, vec, twice, lane)                                                 \
    INLINE void fold_by_##name(const folds_t *a, const int width, const int count) {              \
        const ptrdiff_t size = bits / 8, lanes = VEC_BYTES / size, last = a->n - lanes;           \
        const vec add = (vec){0} + (lane)a->add, keep = (vec){0} + (lane)a->keep;                 \
        const vec flip = (vec){0} + (lane)((lane)a->flip * ((1u << bits) + 1)); /* (of both) */   \
        for (ptrdiff_t i = 0;;) {                                                                 \
            vec sums[8];                                                                          \
            for (int j = 0; j < width; j++) {                                                     \
                vec sum = {0};                                                                    \
                for (int t = 0; t < count; t++) {                                                 \
                    const char *from = a->taps[t] + (i * width + j * lanes) * size;               \
                    const vec v = (vec)vec_load(from) ^ flip;                                     \
                    sum += (v << bits >> bits) + (v >> bits);                                     \
                }                                                                                 \
                sums[j] = sum;                                                                    \
            }                                                                                     \
            for (int m = width; m > 2; m /= 2)                                                    \
                for (int j = 0; j < m; j += 2) {                                                  \
                    const vec p = sums[j] + (vec)((twice)sums[j] >> 2 * bits);                    \
                    const vec q = sums[j + 1] + (vec)((twice)sums[j + 1] >> 2 * bits);            \
                    sums[j / 2] = (vec)LOW_HALVES(p, q, (lane *)0);                               \
                }                                                                                 \
            for (int j = 0; j < 2; j++)                                                           \
                sums[j] = (sums[j] + add + (sums[j] >> a->shift & keep)) >> a->shift;             \
            vec_store((char *)a->to + i * size,                                                   \
                      LOW_HALVES(sums[0], sums[1], (uint##bits##_t *)0) ^ (vec_t)flip);           \
            if (i == last) break;                                                                 \
            i = i + lanes < last ? i + lanes : last;                                              \
        }                                                                                         \
    }                                                                                             \
    static NOINLINE void fold_##name(const folds_t *a) {                                          \
        switch (a->width) {                                                                       \
        case 2:                                                                                   \
            if (a->count == 2)                                                                    \
                fold_by_##name(a, 2, 2);                                                          \
            else                                                                                  \
                fold_by_##name(a, 2, a->count);                                                   \
            break;                                                                                \
        case 4: fold_by_##name(a, 4, a->count); break;                                            \
        default: fold_by_##name(a, 8, a->count);                                                  \
        }                                                                                         \
    }
DEFINE_FOLD(1, 8, vec_u16, vec_u32, uint16_t)
DEFINE_FOLD(2, 16, vec_u32, vec_u64, uint32_t)

static void fold(const folds_t *a, int bytes) {
    if (bytes == 1)
        fold_1(a);
    else
        fold_2(a);
}

#endif
