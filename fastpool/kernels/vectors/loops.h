/* Loops over plain memory. They use vectors, because setup.py tells gcc to vectorise no loops. */
#ifndef FASTPOOL_LOOPS_H
#define FASTPOOL_LOOPS_H

#include "vector.h"

/* They are called from many places, and a call costs little next to the loop. */
#define NOINLINE __attribute__((noinline))

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
#define fill(to, n, value) BY_TYPE(fill, to)(to, n, value)

/* ---- first, first + 1, ... ---- */

#define DEFINE_FILL_POSITIONS(L)                                                                  \
    static void fill_positions_i##L(int##L##_t *to, ptrdiff_t n, int64_t first) {                 \
        const ptrdiff_t lanes = VEC_BYTES * 8 / L;                                                \
        vec_u##L positions;                                                                       \
        ptrdiff_t i = 0;                                                                          \
        for (; i < lanes; i++) positions[i] = (uint##L##_t)(first + i);                           \
        for (i = 0; i + lanes <= n; i += lanes, positions += (uint##L##_t)lanes)                  \
            vec_store(to + i, (vec_t)positions);                                                  \
        for (; i < n; i++) to[i] = (int##L##_t)(first + i);                                       \
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

/* ---- the greater of pairs of a key and a place; if keys are equal, the lower place ---- */

static void max_pairs_of(int64_t *keys, int64_t *places, const int64_t *a, const int64_t *a_places,
                         const int64_t *b, const int64_t *b_places, ptrdiff_t n) {
    const ptrdiff_t lanes = VEC_BYTES / 8;
    ptrdiff_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        vec_i64 key = (vec_i64)vec_load(b + i), place = (vec_i64)vec_load(b_places + i);
        vec_i64 other = (vec_i64)vec_load(a + i), other_place = (vec_i64)vec_load(a_places + i);
        vec_i64 better = (key > other) | ((key == other) & (place < other_place));
        vec_store(keys + i, (vec_t)((key & better) | (other & ~better)));
        vec_store(places + i, (vec_t)((place & better) | (other_place & ~better)));
    }
    for (; i < n; i++) {
        int better = (b[i] > a[i]) | ((b[i] == a[i]) & (b_places[i] < a_places[i]));
        int64_t key = better ? b[i] : a[i]; /* (the results may overwrite a or b) */
        places[i] = better ? b_places[i] : a_places[i];
        keys[i] = key;
    }
}

/* ---- indices as places in planes of `size` elements, which begin at base + i * step
 * ---- A place is outside if it, or what is left after it, has a sign bit: SSE2 cannot compare
 * ---- 64-bit integers. Therefore it also takes the last place one by one. ---- */

#define WHOLE_PLACES(n) ((n) / (VEC_BYTES / 8) * (VEC_BYTES / 8))
#define DEFINE_PLACES(I)                                                                          \
    INLINE vec_u64 load_places_i##I(const int##I##_t *index, vec_u64 bases) {                     \
        VECTOR(int##I##_t, VEC_BYTES * I / 64) stored;                                            \
        memcpy(&stored, index, sizeof stored);                                                    \
        return (vec_u64)__builtin_convertvector(stored, vec_i64) - bases;                         \
    }                                                                                             \
    static NOINLINE int vectors_outside_i##I(const int##I##_t *index, ptrdiff_t n, uint64_t base, \
                                             uint64_t step, uint64_t size) {                      \
        const ptrdiff_t lanes = VEC_BYTES / 8;                                                    \
        vec_u64 bases = (vec_u64)vec_iota((int64_t)step) + base, outside = {0};                   \
        for (ptrdiff_t i = 0; i < n; i += lanes, bases += (uint64_t)lanes * step) {               \
            vec_u64 place = load_places_i##I(index + i, bases);                                   \
            outside |= place | (size - 1 - place);                                                \
        }                                                                                         \
        return vec_any((vec_t)(outside >> 63));                                                   \
    }                                                                                             \
    INLINE int any_outside_i##I(const int##I##_t *index, ptrdiff_t n, uint64_t base,              \
                                uint64_t step, uint64_t size) {                                   \
        ptrdiff_t i = WHOLE_PLACES(n);                                                            \
        uint64_t outside = 0;                                                                     \
        if (i && vectors_outside_i##I(index, i, base, step, size)) return 1;                      \
        for (base += (uint64_t)i * step; i < n; i++, base += step) {                              \
            uint64_t place = (uint64_t)(int64_t)index[i] - base;                                  \
            outside |= place | (size - 1 - place);                                                \
        }                                                                                         \
        return (int)(outside >> 63);                                                              \
    }                                                                                             \
    static NOINLINE int store_vectors_i##I(uint64_t *places, const int##I##_t *index,             \
                                           ptrdiff_t n, uint64_t base, uint64_t step,             \
                                           uint64_t size, ptrdiff_t *last) {                      \
        const ptrdiff_t lanes = VEC_BYTES / 8;                                                    \
        vec_u64 bases = (vec_u64)vec_iota((int64_t)step) + base, outside = {0};                   \
        vec_t most = {0};                                                                         \
        ptrdiff_t i, found = *last;                                                               \
        for (i = 0; i < n; i += lanes, bases += (uint64_t)lanes * step) {                         \
            vec_u64 place = load_places_i##I(index + i, bases);                                   \
            outside |= place | (size - 1 - place);                                                \
            if (VEC_BYTES > 16) most = vec_max_i64(most, (vec_t)place);                           \
            vec_store(places + i, (vec_t)place);                                                  \
        }                                                                                         \
        for (i = 0; i < (VEC_BYTES > 16 ? lanes : n); i++) {                                      \
            ptrdiff_t place = VEC_BYTES > 16 ? ((vec_i64)most)[i] : (ptrdiff_t)places[i];         \
            found = place > found ? place : found;                                                \
        }                                                                                         \
        *last = found;                                                                            \
        return !vec_any((vec_t)(outside >> 63));                                                  \
    }                                                                                             \
    INLINE int store_places_i##I(uint64_t *places, const int##I##_t *index, ptrdiff_t n,          \
                                 uint64_t base, uint64_t step, uint64_t size, ptrdiff_t *last) {  \
        ptrdiff_t i = WHOLE_PLACES(n), found;                                                     \
        uint64_t outside = 0;                                                                     \
        if (i && !store_vectors_i##I(places, index, i, base, step, size, last)) return 0;         \
        found = *last;                                                                            \
        for (base += (uint64_t)i * step; i < n; i++, base += step) {                              \
            uint64_t place = (uint64_t)(int64_t)index[i] - base;                                  \
            outside |= place | (size - 1 - place);                                                \
            found = (ptrdiff_t)place > found ? (ptrdiff_t)place : found;                          \
            places[i] = place;                                                                    \
        }                                                                                         \
        *last = found;                                                                            \
        return !(outside >> 63);                                                                  \
    }
DEFINE_PLACES(32) DEFINE_PLACES(64)
#define BY_INDEX(name, index) _Generic(*(index), int32_t: name##_i32, int64_t: name##_i64)
#define any_outside(index, n, base, step, size)                                                   \
    BY_INDEX(any_outside, index)(index, n, base, step, size)
#define store_places(places, index, n, base, step, size, last)                                    \
    BY_INDEX(store_places, index)(places, index, n, base, step, size, last)

#endif
