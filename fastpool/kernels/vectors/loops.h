/* Loops over plain memory, for compilers to vectorise.
 *
 * setup.py tells gcc to vectorise no other loops: those of the kernels use vectors already. */
#ifndef FASTPOOL_LOOPS_H
#define FASTPOOL_LOOPS_H

#include "vector.h"

/* ---- fill ---- */

static void fill_bytes(char *to, ptrdiff_t nbytes, vec_t v) {
    if (nbytes < VEC_BYTES) {
        vec_store_part(to, v, (size_t)nbytes);
        return;
    }
    for (; nbytes > VEC_BYTES; to += VEC_BYTES, nbytes -= VEC_BYTES) vec_store(to, v);
    vec_store(to + nbytes - VEC_BYTES, v); /* (overlaps the one before, element by element) */
}
#define DEFINE_FILL(name, type)                                                                   \
    INLINE void fill_##name(type *to, ptrdiff_t n, type value) {                                  \
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
#define fill(to, n, value) BY_TYPE(fill, to)(to, n, value)

/* ---- first, first + 1, ... ---- */

#define DEFINE_FILL_POSITIONS(L)                                                                  \
    static void fill_positions_i##L(int##L##_t *to, ptrdiff_t n, int64_t first) {                 \
        _Pragma("omp simd")                                                                       \
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (int##L##_t)(first + i);                        \
    }
DEFINE_FILL_POSITIONS(16) DEFINE_FILL_POSITIONS(32) DEFINE_FILL_POSITIONS(64)
#define fill_positions(to, n, first) BY_KEY(fill_positions, to)(to, n, first)

/* ---- bytes as 0 and 1 ---- */

static void store_bools(uint8_t *bytes, ptrdiff_t n) {
    _Pragma("omp simd")
    for (ptrdiff_t i = 0; i < n; i++) bytes[i] = bytes[i] != 0;
}

/* ---- the greater of pairs of a key and a place; if keys are equal, the lower place ---- */

static void max_pairs_of(int64_t *keys, int64_t *places, const int64_t *a, const int64_t *a_places,
                         const int64_t *b, const int64_t *b_places, ptrdiff_t n) {
    _Pragma("omp simd")
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t key = b[i], place = b_places[i], other = a[i], other_place = a_places[i];
        int better = (key > other) | ((key == other) & (place < other_place));
        keys[i] = better ? key : other;
        places[i] = better ? place : other_place;
    }
}

/* ---- indices as places in planes of `size` elements, which begin at base + i * step
 * ---- A place is outside if it, or what is left after it, has a sign bit. (SSE2 cannot compare
 * ---- 64-bit integers.) ---- */

#define DEFINE_PLACES(L)                                                                          \
    static int any_outside_i##L(const int##L##_t *index, ptrdiff_t n, uint64_t base,              \
                                uint64_t step, uint64_t size) {                                   \
        uint64_t outside = 0;                                                                     \
        _Pragma("omp simd reduction(|:outside) linear(base:step)")                                \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            uint64_t place = (uint64_t)(int64_t)index[i] - base;                                  \
            outside |= place | (size - 1 - place);                                                \
            base += step;                                                                         \
        }                                                                                         \
        return (int)(outside >> 63);                                                              \
    }                                                                                             \
    static int store_places_i##L(uint64_t *places, const int##L##_t *index, ptrdiff_t n,          \
                                 uint64_t base, uint64_t step, uint64_t size, ptrdiff_t *last) {  \
        uint64_t outside = 0;                                                                     \
        ptrdiff_t most = *last;                                                                   \
        _Pragma("omp simd reduction(|:outside) reduction(max:most) linear(base:step)")            \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            uint64_t place = (uint64_t)(int64_t)index[i] - base;                                  \
            outside |= place | (size - 1 - place);                                                \
            base += step;                                                                         \
            places[i] = place;                                                                    \
            most = (ptrdiff_t)place > most ? (ptrdiff_t)place : most;                             \
        }                                                                                         \
        *last = most;                                                                             \
        return !(outside >> 63);                                                                  \
    }
DEFINE_PLACES(32) DEFINE_PLACES(64)
#define BY_INDEX(name, index) _Generic(*(index), int32_t: name##_i32, int64_t: name##_i64)
#define any_outside(index, n, base, step, size)                                                   \
    BY_INDEX(any_outside, index)(index, n, base, step, size)
#define store_places(places, index, n, base, step, size, last)                                    \
    BY_INDEX(store_places, index)(places, index, n, base, step, size, last)

#endif
