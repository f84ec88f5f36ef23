/* Loops over plain memory: with vectors, or for compilers to vectorise. */
#ifndef FASTPOOL_LOOPS_H
#define FASTPOOL_LOOPS_H

#include "vector.h"

/* They are called from many places, and a call costs little next to the loop. */
#define NOINLINE __attribute__((noinline))
/* setup.py tells gcc to vectorise no other loops. (It would ignore `omp simd` then.) */
#if defined(__GNUC__) && !defined(__clang__)
#define VECTORISED NOINLINE __attribute__((optimize("tree-loop-vectorize")))
#else
#define VECTORISED NOINLINE
#endif

/* ---- fill ---- */

static NOINLINE void fill_bytes(char *to, ptrdiff_t nbytes, vec_t v) {
    if (nbytes < VEC_BYTES) {
        vec_store_part(to, v, (size_t)nbytes);
        return;
    }
    for (; nbytes > VEC_BYTES; to += VEC_BYTES, nbytes -= VEC_BYTES) vec_store(to, v);
    vec_store(to + nbytes - VEC_BYTES, v); /* (overlaps the one before, element by element) */
}
#define DEFINE_FILL(name, type)                                                                   \
    static NOINLINE void fill_##name(type *to, ptrdiff_t n, type value) {                         \
        if (n <= 4) { /* (a margin) */                                                            \
            for (ptrdiff_t i = 0; i < n; i++) to[i] = value;                                      \
            return;                                                                               \
        }                                                                                         \
        fill_bytes((char *)to, n * (ptrdiff_t)sizeof(type), (vec_t)(value - (vec_##name){0}));    \
    }
INLINE void fill_i8(int8_t *to, ptrdiff_t n, int8_t value) {
    if (n > 0) memset(to, value, (size_t)n);
}
INLINE void fill_u8(uint8_t *to, ptrdiff_t n, uint8_t value) {
    if (n > 0) memset(to, value, (size_t)n);
}
DEFINE_FILL(f32, float) DEFINE_FILL(f64, double)
DEFINE_FILL(i16, int16_t) DEFINE_FILL(u16, uint16_t)
DEFINE_FILL(i32, int32_t) DEFINE_FILL(u32, uint32_t)
DEFINE_FILL(i64, int64_t) DEFINE_FILL(u64, uint64_t)
#define DEFINE_FILL_OF_MIN(name)                                                                  \
    INLINE void fill_min_##name(min_##name##_t *to, ptrdiff_t n, __typeof__(to->value) value) {   \
        fill_##name(&to->value, n, value);                                                        \
    }
DEFINE_FILL_OF_MIN(f32) DEFINE_FILL_OF_MIN(f64) DEFINE_FILL_OF_MIN(u8) DEFINE_FILL_OF_MIN(u16)
#define fill(to, n, value) BY_TYPE(fill, to)(to, n, value)
#define fill_lowest(to, n) fill(to, n, lowest(to))

/* ---- a column of rows, `nbytes` wide ---- */

static void copy_column(char *to, ptrdiff_t pitch, const char *from, ptrdiff_t from_pitch,
                        ptrdiff_t rows, ptrdiff_t nbytes) {
    for (; rows > 0; rows--, to += pitch, from += from_pitch)
        if (nbytes == 1)
            *to = *from;
        else
            memcpy(to, from, (size_t)nbytes);
}

/* ---- prefetch ---- */

INLINE void prefetch_bytes(const char *from, ptrdiff_t nbytes) {
    for (ptrdiff_t i = 0; i < nbytes; i += 64) __builtin_prefetch(from + i);
}

/* ---- first, first + 1, ... ---- */

#define DEFINE_FILL_POSITIONS(L)                                                                  \
    static VECTORISED void fill_positions_i##L(int##L##_t *to, ptrdiff_t n, int64_t first) {      \
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (int##L##_t)(first + i);                        \
    }
DEFINE_FILL_POSITIONS(16) DEFINE_FILL_POSITIONS(32) DEFINE_FILL_POSITIONS(64)
#define fill_positions(to, n, first) BY_KEY(fill_positions, to)(to, n, first)

/* ---- bytes as 0 and 1 ---- */

INLINE vec_t bools_of(vec_t v) { return (vec_t)((vec_u8)((vec_u8)v != 0) & 1); }
static void store_bools(uint8_t *bytes, ptrdiff_t n) {
    ptrdiff_t i = 0;
    if (n < VEC_BYTES) {
        vec_store_part(bytes, bools_of(vec_load_part(bytes, (size_t)n)), (size_t)n);
        return;
    }
    for (; i + VEC_BYTES < n; i += VEC_BYTES) vec_store(bytes + i, bools_of(vec_load(bytes + i)));
    i = n - VEC_BYTES; /* (what overlaps is 0 or 1 already) */
    vec_store(bytes + i, bools_of(vec_load(bytes + i)));
}

/* ---- the greatest of n keys, n > 0, and the first place of a key that is there ---- */

#define DEFINE_GREATEST(L)                                                                        \
    static VECTORISED int##L##_t greatest_i##L(const int##L##_t *keys, ptrdiff_t n) {             \
        int##L##_t most = keys[0];                                                                \
        for (ptrdiff_t i = 0; i < n; i++) most = keys[i] > most ? keys[i] : most;                 \
        return most;                                                                              \
    }                                                                                             \
    static VECTORISED ptrdiff_t first_equal_i##L(const int##L##_t *keys, ptrdiff_t n,             \
                                                 int##L##_t key) {                                \
        ptrdiff_t first = 0;                                                                      \
        for (; first + 64 <= n; first += 64) {                                                    \
            int##L##_t found = 0;                                                                 \
            for (ptrdiff_t i = 0; i < 64; i++) found |= (int##L##_t)-(keys[first + i] == key);    \
            if (found) break;                                                                     \
        }                                                                                         \
        while (keys[first] != key) first++;                                                       \
        return first;                                                                             \
    }
DEFINE_GREATEST(16) DEFINE_GREATEST(32) DEFINE_GREATEST(64)
#define greatest(keys, n) BY_KEY(greatest, keys)(keys, n)
#define first_equal(keys, n, key) BY_KEY(first_equal, keys)(keys, n, key)

/* ---- the greater of pairs of a key and a place; if keys are equal, the lower place ---- */

static VECTORISED void max_pairs_of(int64_t *keys, int64_t *places, const int64_t *a,
                                    const int64_t *a_places, const int64_t *b,
                                    const int64_t *b_places, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) { /* (the results may overwrite a or b) */
        int64_t key = b[i], place = b_places[i], other = a[i], other_place = a_places[i];
        int better = (key > other) | ((key == other) & (place < other_place));
        keys[i] = better ? key : other;
        places[i] = better ? place : other_place;
    }
}

/* ---- indices as places in planes of `size` elements: of one plane, which begins at `base`, of the
 * ---- channels of a pixel, whose planes begin at base + i * step, and of planes that begin at
 * ---- base + table[i]
 * ---- A place is outside if it, or what is left after it, has a sign bit: SSE2 cannot compare
 * ---- 64-bit integers. ---- */

/* (Aligned: what is read from the middle of a store over two cache lines would have to wait.) */
typedef struct {
    uint64_t of[256] __attribute__((aligned(64)));
} places_t;

#define DEFINE_PLACES(name, I, before, ...)                                                       \
    static VECTORISED int name##_outside_i##I(const int##I##_t *index, ptrdiff_t n,               \
                                              __VA_ARGS__, uint64_t size) {                       \
        uint64_t outside = 0;                                                                     \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            uint64_t place = (uint64_t)(int64_t)index[i] - (before);                              \
            outside |= place | (size - 1 - place);                                                \
        }                                                                                         \
        return (int)(outside >> 63);                                                              \
    }                                                                                             \
    static VECTORISED int name##_places_i##I(uint64_t *places, const int##I##_t *index,           \
                                             ptrdiff_t n, __VA_ARGS__, uint64_t size,             \
                                             ptrdiff_t *last) {                                   \
        uint64_t outside = 0;                                                                     \
        ptrdiff_t most = *last;                                                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            uint64_t place = (uint64_t)(int64_t)index[i] - (before);                              \
            outside |= place | (size - 1 - place);                                                \
            places[i] = place;                                                                    \
            most = (ptrdiff_t)place > most ? (ptrdiff_t)place : most;                             \
        }                                                                                         \
        *last = most;                                                                             \
        return !(outside >> 63);                                                                  \
    }                                                                                             \
    static VECTORISED void name##_range_i##I(const int##I##_t *index, ptrdiff_t n, __VA_ARGS__,   \
                                             ptrdiff_t *first, ptrdiff_t *last) {                 \
        ptrdiff_t least = *first, most = *last;                                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            ptrdiff_t place = (ptrdiff_t)((uint64_t)(int64_t)index[i] - (before));                \
            least = place < least ? place : least;                                                \
            most = place > most ? place : most;                                                   \
        }                                                                                         \
        *first = least;                                                                           \
        *last = most;                                                                             \
    }
#define DEFINE_ALL_PLACES(I)                                                                      \
    DEFINE_PLACES(plane, I, base, uint64_t base)                                                  \
    DEFINE_PLACES(pixel, I, base + (uint64_t)i *step, uint64_t base, uint64_t step)               \
    DEFINE_PLACES(table, I, base + table[i], uint64_t base, const uint64_t *table)
DEFINE_ALL_PLACES(32) DEFINE_ALL_PLACES(64)

/* Indices of 32 or 64 bits, from the one at `at` on. */
typedef struct {
    const char *data;
    int bytes; /* of one */
} indices_t;
#define BY_INDEX(name, index, at, ...)                                                            \
    ((index)->bytes == 8 ? name##_i64((const int64_t *)(index)->data + (at), __VA_ARGS__)          \
                         : name##_i32((const int32_t *)(index)->data + (at), __VA_ARGS__))
#define BY_INDEX_TO(name, to, index, at, ...)                                                     \
    ((index)->bytes == 8 ? name##_i64(to, (const int64_t *)(index)->data + (at), __VA_ARGS__)      \
                         : name##_i32(to, (const int32_t *)(index)->data + (at), __VA_ARGS__))
#define plane_outside(...) BY_INDEX(plane_outside, __VA_ARGS__)
#define pixel_outside(...) BY_INDEX(pixel_outside, __VA_ARGS__)
#define table_outside(...) BY_INDEX(table_outside, __VA_ARGS__)
#define plane_range(...) BY_INDEX(plane_range, __VA_ARGS__)
#define pixel_range(...) BY_INDEX(pixel_range, __VA_ARGS__)
#define table_range(...) BY_INDEX(table_range, __VA_ARGS__)
#define plane_places(to, ...) BY_INDEX_TO(plane_places, to, __VA_ARGS__)
#define pixel_places(to, ...) BY_INDEX_TO(pixel_places, to, __VA_ARGS__)
#define table_places(to, ...) BY_INDEX_TO(table_places, to, __VA_ARGS__)
INLINE uint64_t index_at(const indices_t *index, ptrdiff_t at) {
    if (index->bytes == 8) return (uint64_t)((const int64_t *)index->data)[at];
    return (uint64_t)(int64_t)((const int32_t *)index->data)[at];
}

/* ---- store values at places (unrolled: at some addresses so short a loop takes twice as long) */

#define DEFINE_SCATTER(name, type)                                                                \
    static NOINLINE void scatter_##name(type *y, const type *x, const uint64_t *places,           \
                                        ptrdiff_t n) {                                            \
        _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < n; i++) y[places[i]] = x[i];            \
    }                                                                                             \
    static NOINLINE void scatter_by_##name(type *y, const type *x, const uint64_t *places,        \
                                           const uint64_t *at, uint64_t scale, ptrdiff_t n) {     \
        _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < n; i++)                                 \
            y[places[i] * scale + at[i]] = x[i];                                                  \
    }
DEFINE_SCATTER(u8, uint8_t) DEFINE_SCATTER(u16, uint16_t)
DEFINE_SCATTER(u32, uint32_t) DEFINE_SCATTER(u64, uint64_t)
#define BY_BITS(name, y)                                                                          \
    _Generic(*(y), uint8_t: name##_u8, uint16_t: name##_u16, uint32_t: name##_u32,                \
             uint64_t: name##_u64)
#define scatter(y, ...) BY_BITS(scatter, y)(y, __VA_ARGS__)
#define scatter_by(y, ...) BY_BITS(scatter_by, y)(y, __VA_ARGS__)

#endif
