/* Positions to indices.
 *
 * A position is unsigned and as wide as a key. The index of lane j is
 * base + j * step + position * scale.
 */
#ifndef FASTPOOL_INDICES_H
#define FASTPOOL_INDICES_H

#include "vector.h"

/* ---- of n positions in memory ---- */

#define DEFINE_STORE_INDICES(L, I)                                                                \
    static void store_indices_##L##_##I(int##I##_t *to, const int##L##_t *from, size_t n,         \
                                        int64_t base, int64_t step, int64_t scale) {              \
        typedef VECTOR(uint##L##_t, VEC_BYTES * L / 64) narrow_t;                                 \
        typedef VECTOR(int##I##_t, VEC_BYTES * I / 64) index_t;                                   \
        const size_t lanes = VEC_BYTES / 8;                                                       \
        size_t j = 0;                                                                             \
        vec_i64 place = (vec_i64){0} + base;                                                      \
        for (size_t i = 0; i < lanes; i++) place[i] += (int64_t)i * step;                         \
        for (; j + lanes <= n; j += lanes, place += (int64_t)lanes * step) {                      \
            narrow_t position;                                                                    \
            memcpy(&position, from + j, sizeof position);                                         \
            vec_i64 wide = __builtin_convertvector(position, vec_i64);                            \
            if (scale != 1) wide *= scale;                                                        \
            index_t index = __builtin_convertvector(wide + place, index_t);                       \
            memcpy(to + j, &index, sizeof index);                                                 \
        }                                                                                         \
        for (; j < n; j++)                                                                        \
            to[j] = (int##I##_t)(base + (int64_t)j * step + (int64_t)(uint##L##_t)from[j] * scale);\
    }
DEFINE_STORE_INDICES(16, 32)
DEFINE_STORE_INDICES(32, 32)
DEFINE_STORE_INDICES(64, 32)
DEFINE_STORE_INDICES(16, 64)
DEFINE_STORE_INDICES(32, 64)
DEFINE_STORE_INDICES(64, 64)
#define store_indices(to, from, n, base, step, scale)                                             \
    _Generic(*(to),                                                                               \
        int32_t: _Generic(*(from), int16_t: store_indices_16_32, int32_t: store_indices_32_32,    \
                          int64_t: store_indices_64_32),                                          \
        int64_t: _Generic(*(from), int16_t: store_indices_16_64, int32_t: store_indices_32_64,    \
                          int64_t: store_indices_64_64))(to, from, n, base, step, scale)

/* ---- of the first n positions of a vector; iota holds lane * step; indices of 4 or 8 bytes
 * ---- Nearly all calls are for whole vectors of 8 bytes. The others are a function of their
 * own, because their place in memory would be written for whole vectors too. */

INLINE void vec_widen_i64(vec_t v, vec_t *to) { to[0] = v; }

#define DEFINE_STORE_VEC_INDICES(L)                                                               \
    INLINE vec_t index_piece_i##L(vec_t wide, int i, int64_t base, vec_t iota, int64_t step) {    \
        return (vec_t)((vec_i64)wide                                                              \
                       + ((vec_i64)iota + (base + i * (int64_t)(VEC_BYTES / 8) * step)));         \
    }                                                                                             \
    static __attribute__((noinline)) void store_some_indices_i##L(                                \
        char *to, vec_t places, size_t n, int64_t base, vec_t iota, int64_t step, int bytes) {    \
        vec_t index[5] = {iota, iota, iota, iota, iota};                                          \
        int i;                                                                                    \
        vec_widen_i##L(places, index);                                                            \
        for (i = 0; i < 64 / L; i++) index[i] = index_piece_i##L(index[i], i, base, iota, step);  \
        if (bytes == 4)                                                                           \
            for (i = 0; i < (64 / L + 1) / 2; i++)                                                \
                index[i] = HIGH_HALF_FIRST ? vec_concat_odd_4(index[2 * i], index[2 * i + 1])     \
                                           : vec_concat_even_4(index[2 * i], index[2 * i + 1]);   \
        n *= (size_t)bytes;                                                                       \
        for (i = 0; n >= VEC_BYTES; i++, n -= VEC_BYTES) vec_store(to + i * VEC_BYTES, index[i]); \
        if (n) vec_store_part(to + i * VEC_BYTES, index[i], n);                                   \
    }                                                                                             \
    INLINE void store_vec_indices_i##L(char *to, vec_t places, size_t n, int64_t base, vec_t iota,\
                                       int64_t step, int bytes) {                                 \
        vec_t wide[4];                                                                            \
        if (n < VEC_BYTES * 8 / L || bytes != 8) {                                                \
            store_some_indices_i##L(to, places, n, base, iota, step, bytes);                      \
            return;                                                                               \
        }                                                                                         \
        vec_widen_i##L(places, wide);                                                             \
        for (int i = 0; i < 64 / L; i++)                                                          \
            vec_store(to + i * VEC_BYTES, index_piece_i##L(wide[i], i, base, iota, step));        \
    }
DEFINE_STORE_VEC_INDICES(16)
DEFINE_STORE_VEC_INDICES(32)
DEFINE_STORE_VEC_INDICES(64)
#define store_vec_indices(to, places, n, base, iota, step, bytes, tag)                            \
    BY_KEY(store_vec_indices, tag)(to, places, n, base, iota, step, bytes)

#endif
