/* Means of small integers whose windows share no column: neighbours, or pixels, are added in lanes
 * of twice their width, and the sums are shifted, which rounds them too. */
#ifndef FASTPOOL_FOLDS_H
#define FASTPOOL_FOLDS_H

#include "convert.h"
#include "loops.h"
#include "quotients.h"

enum { MOST_FOLDED = 128 }; /* taps of a window, whose sums twice the bits of an element hold */

typedef struct {
    char *to;
    const char *taps[MOST_FOLDED]; /* rows of elements, of which each output takes `width` */
    int count, width;              /* 1, 2, 4 or 8 */
    ptrdiff_t at;                  /* bytes from the taps to the first row */
    ptrdiff_t n;                   /* outputs of a row, of a vector at least if width > 2 */
    ptrdiff_t rows, step, pitch;   /* and the bytes between them, of elements and of outputs */
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
/* Rows of a vector at least; rows of half a vector at least, whose second vector and half of the
 * means end with the row; rows shorter than a vector, by masks. */
enum { WHOLE, HALVES, MASKED };
/* Of `left` bytes, those in a vector. */
INLINE size_t in_vector(ptrdiff_t left) {
    return (size_t)(left < 0 ? 0 : left < VEC_BYTES ? left : VEC_BYTES);
}

#define DEFINE_FOLD(name, bits, vec, twice, lane)                                                 \
    INLINE void fold_by_##name(const folds_t *a, const int width, const int count,                \
                               const int how) {                                                   \
        const ptrdiff_t size = bits / 8, lanes = VEC_BYTES / size, n = a->n, last = n - lanes;    \
        const ptrdiff_t step = a->step, pitch = a->pitch, end = n * width * size;                 \
        const vec add = (vec){0} + (lane)a->add, keep = (vec){0} + (lane)a->keep;                 \
        const vec flip = (vec){0} + (lane)((lane)a->flip * ((1u << bits) + 1)); /* (of both) */   \
        const int shift = a->shift;                                                               \
        char *to = a->to;                                                                         \
        ptrdiff_t row = a->at;                                                                    \
        for (ptrdiff_t r = a->rows; r > 0; r--, row += step, to += pitch)                         \
            for (ptrdiff_t i = 0;;) {                                                             \
                vec sums[8];                                                                      \
                for (int j = 0; j < width; j++) {                                                 \
                    vec sum = {0}, high = {0};                                                    \
                    const ptrdiff_t at = how == HALVES && j ? end - VEC_BYTES : j * VEC_BYTES;    \
                    const size_t left = in_vector(end - at);                                      \
                    for (int t = 0; t < (how == MASKED && left == 0 ? 0 : count); t++) {          \
                        const char *p = a->taps[t] + row + i * width * size + at;                 \
                        const vec_t x = how == MASKED ? vec_load_part(p, left) : vec_load(p);     \
                        const vec v = (vec)x ^ flip;                                              \
                        sum += v << bits >> bits;                                                 \
                        high += v >> bits;                                                        \
                    }                                                                             \
                    sums[j] = width > 1 ? sum + high : sum;                                       \
                    if (width == 1) sums[1] = high;                                               \
                }                                                                                 \
                for (int m = width; m > 2; m /= 2)                                                \
                    for (int j = 0; j < m; j += 2) {                                              \
                        const vec p = sums[j] + (vec)((twice)sums[j] >> 2 * bits);                \
                        const vec q = sums[j + 1] + (vec)((twice)sums[j + 1] >> 2 * bits);        \
                        sums[j / 2] = (vec)LOW_HALVES(p, q, (lane *)0);                           \
                    }                                                                             \
                for (int j = 0; j < 2; j++)                                                       \
                    sums[j] = (sums[j] + add + (sums[j] >> shift & keep)) >> shift;               \
                vec_t means = (vec_t)(sums[0] | sums[1] << bits);                                 \
                if (width > 1) means = LOW_HALVES(sums[0], sums[1], (uint##bits##_t *)0);         \
                means ^= (vec_t)flip;                                                             \
                if (how == WHOLE) {                                                               \
                    vec_store(to + i * size, means);                                              \
                } else if (how == MASKED) {                                                       \
                    vec_store_part(to, means, (size_t)(n * size));                                \
                } else {                                                                          \
                    memcpy(to, &means, VEC_BYTES / 2);                                            \
                    memcpy(to + n * size - VEC_BYTES / 2, (const char *)&means + VEC_BYTES / 2,   \
                           VEC_BYTES / 2);                                                        \
                }                                                                                 \
                if (how != WHOLE || i == last) break;                                             \
                i = i + lanes < last ? i + lanes : last;                                          \
            }                                                                                     \
    }                                                                                             \
    static NOINLINE void fold_##name(const folds_t *a) {                                          \
        enum { SHORT = VEC_MASKS ? MASKED : HALVES };                                             \
        const int whole = a->n >= VEC_BYTES * 8 / bits;                                           \
        switch (a->width) {                                                                       \
        case 1:                                                                                   \
            if (VEC_MASKS && !whole)                                                              \
                fold_by_##name(a, 1, a->count, MASKED);                                           \
            else if (a->count == 4)                                                               \
                fold_by_##name(a, 1, 4, WHOLE);                                                   \
            else                                                                                  \
                fold_by_##name(a, 1, a->count, WHOLE);                                            \
            break;                                                                                \
        case 2:                                                                                   \
            if (!whole && a->count == 2)                                                          \
                fold_by_##name(a, 2, 2, SHORT);                                                   \
            else if (!whole)                                                                      \
                fold_by_##name(a, 2, a->count, SHORT);                                            \
            else if (a->count == 2)                                                               \
                fold_by_##name(a, 2, 2, WHOLE);                                                   \
            else                                                                                  \
                fold_by_##name(a, 2, a->count, WHOLE);                                            \
            break;                                                                                \
        case 4: fold_by_##name(a, 4, a->count, WHOLE); break;                                     \
        default: fold_by_##name(a, 8, a->count, WHOLE);                                           \
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
