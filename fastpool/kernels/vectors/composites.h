/* Composites: a key and a place as one integer of twice the width.
 *
 * The upper half is the key (keys.h), the lower half the complement of the place. So the greatest
 * composite has the greatest key and, among equal keys, the first place. The lowest integer is that
 * of margins: no place is so far that an element could have it.
 */
#ifndef FASTPOOL_COMPOSITES_H
#define FASTPOOL_COMPOSITES_H

#include "keys.h"
#include "loops.h"

/* ---- make composites of `rows` rows of n elements, one after the other
 * ---- The place of element i of row r is first + r * row_places + steps[i]. ---- */

typedef struct {
    const void *steps;      /* as wide as keys, and VEC_BYTES longer than a row */
    ptrdiff_t first, row_places;
} places_of_t;

typedef void (*compose_t)(void *to, const void *x, ptrdiff_t x_step, size_t rows, size_t n,
                          int rule, const places_of_t *places);

#define ZIP_1(i, n) i, i + n
#define ZIP_2(i, n) ZIP_1(i, n), ZIP_1(i + 1, n)
#define ZIP_4(i, n) ZIP_2(i, n), ZIP_2(i + 2, n)
#define ZIP_8(i, n) ZIP_4(i, n), ZIP_4(i + 4, n)
#define ZIP_16(i, n) ZIP_8(i, n), ZIP_8(i + 8, n)
#if VEC_BYTES == 64
#define ZIP_HALF_16(i) ZIP_16(i * 16, 32)
#define ZIP_HALF_32(i) ZIP_8(i * 8, 16)
#elif VEC_BYTES == 32
#define ZIP_HALF_16(i) ZIP_8(i * 8, 16)
#define ZIP_HALF_32(i) ZIP_4(i * 4, 8)
#else
#define ZIP_HALF_16(i) ZIP_4(i * 4, 8)
#define ZIP_HALF_32(i) ZIP_2(i * 2, 4)
#endif

#define DEFINE_COMPOSE(NAME, S, WIDEN, L, LOWEST, TO_KEY, FROM_KEY)                               \
    static void NAME##_L##L##_compose(void *to_, const void *x, ptrdiff_t x_step, size_t rows,    \
                                      size_t n, int rule, const places_of_t *places) {            \
        const size_t lanes = VEC_BYTES / sizeof(int##L##_t);                                      \
        const int##L##_t *steps = (const int##L##_t *)places->steps;                              \
        for (ptrdiff_t r = 0; r < (ptrdiff_t)rows; r++) {                                         \
            const S *from = (const S *)x + r * x_step;                                            \
            int##L##_t *to = (int##L##_t *)to_ + 2 * r * (ptrdiff_t)n;                            \
            const vec_u##L top = (vec_u##L){0}                                                    \
                + (uint##L##_t)~(uint##L##_t)(places->first + r * places->row_places);            \
            for (size_t i = 0;; i += lanes) {                                                     \
                NAME##_L##L##_stored v;                                                           \
                size_t left = 2 * n * sizeof *to;                                                 \
                vec_t key, place;                                                                 \
                if (n < lanes) {                                                                  \
                    vec_t bits = vec_load_part(from, n * sizeof(S));                              \
                    memcpy(&v, &bits, sizeof v);                                                  \
                } else {                                                                          \
                    if (i + lanes > n) i = n - lanes; /* the last overlaps the one before */      \
                    memcpy(&v, from + i, sizeof v);                                               \
                }                                                                                 \
                key = NAME##_L##L##_key(v, rule);                                                 \
                place = (vec_t)(top - (vec_u##L)vec_load(steps + i));                             \
                if (n < lanes && left < VEC_BYTES) {                                              \
                    vec_store_part(to, SHUFFLE_HALVES(vec_u##L, place, key, ZIP_HALF_##L(0)),     \
                                   left);                                                         \
                    break;                                                                        \
                }                                                                                 \
                vec_store(to + 2 * i, SHUFFLE_HALVES(vec_u##L, place, key, ZIP_HALF_##L(0)));     \
                key = SHUFFLE_HALVES(vec_u##L, place, key, ZIP_HALF_##L(1));                      \
                if (n < lanes) {                                                                  \
                    vec_store_part(to + lanes, key, left - VEC_BYTES);                            \
                    break;                                                                        \
                }                                                                                 \
                vec_store(to + 2 * i + lanes, key);                                               \
                if (i + lanes == n) break;                                                        \
            }                                                                                     \
        }                                                                                         \
    }
DEFINE_KEYS_16(DEFINE_COMPOSE)
DEFINE_KEYS_32(DEFINE_COMPOSE)
static compose_t const compose_table[2][DTYPES] = {ROW_16(compose), ROW_32(compose)};
INLINE compose_t composer(int code, int key_bytes) { return compose_table[key_bytes >> 2][code]; }

/* ---- take them apart: keys, and the indices of their places
 * ---- A place is (slab * rows + row) * cols + col, below 2 ** 22, so that quotients by floats are
 * ---- exact. An index is base + place * col + place / cols * row + place / (cols * rows) * slab,
 * ---- and with `lanes`, lanes[i] more. ---- */

typedef struct {
    float per_col, per_row; /* 1 / cols, 1 / rows */
    uint32_t col, row, slab;
} decoding_t;

/* Blocks of one length make one loop of vectors, without rests: 13 kB less machine code. */
#define BLOCK 16
static const int64_t no_more[BLOCK] = {0};

#define DEFINE_INDICES_OF(L, W, I)                                                                \
    INLINE int##I##_t index_of_##L##_##I(int##W##_t composite, int64_t base,                      \
                                         const decoding_t *as) {                                  \
        const uint32_t place = (uint##L##_t)~(uint##L##_t)composite;                              \
        const int32_t row = (int32_t)(((float)(int32_t)place + 0.5f) * as->per_col);              \
        uint32_t more = place * as->col + (uint32_t)row * as->row;                                \
        more += (uint32_t)(int32_t)(((float)row + 0.5f) * as->per_row) * as->slab;                \
        return composite == INT##W##_MIN ? -1 : (int##I##_t)(base + (int64_t)more);               \
    }                                                                                             \
    static VECTORISED void indices_of_##L##_##I(int##I##_t *restrict to, const void *from_,       \
                                                const int64_t *lanes, ptrdiff_t n, int64_t base,  \
                                                const decoding_t *how) {                          \
        const int##W##_t *restrict from = (const int##W##_t *)from_;                              \
        const decoding_t as = *how;                                                               \
        const ptrdiff_t step = lanes != NULL;                                                     \
        const int64_t *restrict more = step ? lanes : no_more;                                    \
        if (n < BLOCK) {                                                                          \
            int##W##_t part[BLOCK] = {0};                                                         \
            int64_t some[BLOCK] = {0};                                                            \
            int##I##_t found[BLOCK];                                                              \
            memcpy(part, from, (size_t)n * sizeof *from);                                         \
            memcpy(some, more, (size_t)n * sizeof *more);                                         \
            indices_of_##L##_##I(found, part, some, BLOCK, base, how);                            \
            memcpy(to, found, (size_t)n * sizeof *to);                                            \
            return;                                                                               \
        }                                                                                         \
        for (ptrdiff_t i = 0;; i += BLOCK) {                                                      \
            if (i + BLOCK > n) i = n - BLOCK; /* the last overlaps the one before */              \
            for (ptrdiff_t j = 0; j < BLOCK; j++)                                                 \
                to[i + j] = index_of_##L##_##I(from[i + j], base + more[i * step + j], &as);      \
            if (i + BLOCK == n) break;                                                            \
        }                                                                                         \
    }
#define DEFINE_APART(L, W)                                                                        \
    static VECTORISED void keys_of_i##L(int##L##_t *keys, const void *from_, ptrdiff_t n) {       \
        const int##W##_t *from = (const int##W##_t *)from_;                                       \
        for (ptrdiff_t i = 0; i < n; i++) keys[i] = (int##L##_t)(from[i] >> L);                   \
    }                                                                                             \
    DEFINE_INDICES_OF(L, W, 32)                                                                   \
    DEFINE_INDICES_OF(L, W, 64)                                                                   \
    INLINE void indices_of_i##L(void *to, const void *from, const int64_t *lanes, ptrdiff_t n,    \
                                int64_t base, const decoding_t *how, ptrdiff_t bytes) {           \
        if (bytes == 8)                                                                           \
            indices_of_##L##_64((int64_t *)to, from, lanes, n, base, how);                        \
        else                                                                                      \
            indices_of_##L##_32((int32_t *)to, from, lanes, n, base, how);                        \
    }
DEFINE_APART(16, 32)
DEFINE_APART(32, 64)
#define BY_HALF(name, keys) _Generic(*(keys), int16_t: name##_i16, int32_t: name##_i32)
#define keys_of(keys, ...) BY_HALF(keys_of, keys)(keys, __VA_ARGS__)
/* (the last argument, of keys, is the tag) */
#define indices_of(to, from, lanes, n, base, how, bytes, keys)                                    \
    BY_HALF(indices_of, keys)(to, from, lanes, n, base, how, bytes)

#endif
