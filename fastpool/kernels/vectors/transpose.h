/* Transpose a matrix: to[c * to_step + r] = from[r * from_step + c], steps in elements.
 *
 * Blocks of K x K elements, where K of them are 16 bytes, take K loads, K stores, and log2(K)
 * rounds that interleave row i with row i + K / 2. Each round moves the highest bit of a row's
 * number to the end of the column's, and that of the column's to the end of the row's. Shuffles of
 * 64 bytes would not gain: they begin half as often. */
#ifndef FASTPOOL_TRANSPOSE_H
#define FASTPOOL_TRANSPOSE_H

#include "vector.h"

#ifdef __clang__
#define INTERLEAVE(block, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define INTERLEAVE(block, a, b, ...) __builtin_shuffle(a, b, (block){__VA_ARGS__})
#endif

typedef VECTOR(uint8_t, 16) block_1;
typedef VECTOR(uint16_t, 16) block_2;
typedef VECTOR(uint32_t, 16) block_4;
typedef VECTOR(uint64_t, 16) block_8;
#define LOWER_1 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define UPPER_1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOWER_2 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER_2 4, 12, 5, 13, 6, 14, 7, 15
#define LOWER_4 0, 4, 1, 5
#define UPPER_4 2, 6, 3, 7
#define LOWER_8 0, 2
#define UPPER_8 1, 3

#define DEFINE_TRANSPOSE(bytes, T)                                                                \
    static void transpose_##bytes(void *to_, ptrdiff_t to_step, const void *from_,                \
                                  ptrdiff_t from_step, ptrdiff_t rows, ptrdiff_t cols) {          \
        enum { K = 16 / bytes };                                                                  \
        T *to = (T *)to_;                                                                         \
        const T *from = (const T *)from_;                                                         \
        if (rows < K || cols < K) {                                                               \
            for (ptrdiff_t c = 0; c < cols; c++)                                                  \
                for (ptrdiff_t r = 0; r < rows; r++)                                              \
                    to[c * to_step + r] = from[r * from_step + c];                                \
            return;                                                                               \
        }                                                                                         \
        for (ptrdiff_t c = 0; c < cols; c += K) {                                                 \
            if (c > cols - K) c = cols - K; /* (some elements are moved again) */                 \
            for (ptrdiff_t r = 0; r < rows; r += K) {                                             \
                block_##bytes block[K], next[K];                                                  \
                if (r > rows - K) r = rows - K;                                                   \
                for (int i = 0; i < K; i++)                                                       \
                    memcpy(&block[i], from + (r + i) * from_step + c, 16);                        \
                for (int round = 1; round < K; round *= 2) {                                      \
                    for (int i = 0; i < K / 2; i++) {                                             \
                        block_##bytes a = block[i], b = block[i + K / 2];                         \
                        next[2 * i] = INTERLEAVE(block_##bytes, a, b, LOWER_##bytes);             \
                        next[2 * i + 1] = INTERLEAVE(block_##bytes, a, b, UPPER_##bytes);         \
                    }                                                                             \
                    for (int i = 0; i < K; i++) block[i] = next[i];                               \
                }                                                                                 \
                for (int i = 0; i < K; i++) memcpy(to + (c + i) * to_step + r, &block[i], 16);    \
            }                                                                                     \
        }                                                                                         \
    }
DEFINE_TRANSPOSE(1, uint8_t) DEFINE_TRANSPOSE(2, uint16_t)
DEFINE_TRANSPOSE(4, uint32_t) DEFINE_TRANSPOSE(8, uint64_t)

static void transpose(void *to, ptrdiff_t to_step, const void *from, ptrdiff_t from_step,
                      ptrdiff_t rows, ptrdiff_t cols, int bytes) {
    if (bytes == 1)
        transpose_1(to, to_step, from, from_step, rows, cols);
    else if (bytes == 2)
        transpose_2(to, to_step, from, from_step, rows, cols);
    else if (bytes == 4)
        transpose_4(to, to_step, from, from_step, rows, cols);
    else
        transpose_8(to, to_step, from, from_step, rows, cols);
}

#endif
