/* Transpose a matrix: to[c * to_step + r] = from[r * from_step + c], steps in elements.
 *
 * Blocks of K x K elements, where K of them are 16 bytes, take K loads, K stores, and log2(K)
 * rounds that interleave row i with row i + K / 2. Each round moves the highest bit of a row's
 * number to the end of the column's, and that of the column's to the end of the row's. Shuffles of
 * 64 bytes would not gain: they begin half as often. With AVX2, the rows of two blocks are the
 * halves of one vector (not of bytes: not measured). */
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

#define DEFINE_BLOCK(bytes, T)                                                                    \
    INLINE void transpose_columns_##bytes(T *to, ptrdiff_t to_step, const T *from,                \
                                          ptrdiff_t from_step, ptrdiff_t rows, ptrdiff_t cols) {  \
        enum { K = 16 / bytes };                                                                  \
        block_##bytes block[K], next[K];                                                          \
        for (int i = 0; i < K; i++) /* (the last half of the rows after the first) */             \
            memcpy(&block[i], from + (i < K / 2 ? i : i + rows - K) * from_step, 16);             \
        for (int round = 1; round < K; round *= 2) {                                              \
            for (int i = 0; i < K / 2; i++) {                                                     \
                block_##bytes a = block[i], b = block[i + K / 2];                                 \
                next[2 * i] = INTERLEAVE(block_##bytes, a, b, LOWER_##bytes);                     \
                next[2 * i + 1] = INTERLEAVE(block_##bytes, a, b, UPPER_##bytes);                 \
            }                                                                                     \
            for (int i = 0; i < K; i++) block[i] = next[i];                                       \
        }                                                                                         \
        for (int i = 0; i < cols; i++) {                                                          \
            T *column = to + i * to_step;                                                         \
            if (rows == K) {                                                                      \
                memcpy(column, &block[i], 16);                                                    \
            } else {                                                                              \
                memcpy(column, &block[i], 8);                                                     \
                memcpy(column + rows - K / 2, (const char *)&block[i] + 8, 8);                    \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    INLINE void transpose_block_##bytes(T *to, ptrdiff_t to_step, const T *from,                  \
                                        ptrdiff_t from_step) {                                    \
        transpose_columns_##bytes(to, to_step, from, from_step, 16 / bytes, 16 / bytes);          \
    }
DEFINE_BLOCK(1, uint8_t) DEFINE_BLOCK(2, uint16_t)
DEFINE_BLOCK(4, uint32_t) DEFINE_BLOCK(8, uint64_t)

/* Rows of less than a block. All but the last one are read up to the next row. */
#define DEFINE_NARROW(bytes, T)                                                                   \
    static void transpose_narrow_##bytes(T *to, ptrdiff_t to_step, const T *from,                 \
                                         ptrdiff_t from_step, ptrdiff_t rows, ptrdiff_t cols) {   \
        enum { K = 16 / bytes };                                                                  \
        for (ptrdiff_t r = 0; r < rows - 1; r += K) {                                             \
            if (r > rows - 1 - K) r = rows - 1 - K;                                               \
            transpose_columns_##bytes(to + r, to_step, from + r * from_step, from_step, K, cols); \
        }                                                                                         \
        for (ptrdiff_t c = 0; c < cols; c++)                                                      \
            to[c * to_step + rows - 1] = from[(rows - 1) * from_step + c];                        \
    }
DEFINE_NARROW(1, uint8_t)
DEFINE_NARROW(2, uint16_t)

/* Transpose 8 to 15 rows of bytes as two halves of 8, which overlap. */
static void transpose_few(uint8_t *to, ptrdiff_t to_step, const uint8_t *from, ptrdiff_t from_step,
                          ptrdiff_t rows, ptrdiff_t cols) {
    for (ptrdiff_t c = 0; c < cols; c += 16) {
        if (c > cols - 16) c = cols - 16;
        transpose_columns_1(to + c * to_step, to_step, from + c, from_step, rows, 16);
    }
}

/* Blocks of `k` x `k` elements. */
#define DEFINE_TRANSPOSE(name, T, k)                                                              \
    static void transpose_##name(void *to_, ptrdiff_t to_step, const void *from_,                 \
                                 ptrdiff_t from_step, ptrdiff_t rows, ptrdiff_t cols) {           \
        T *to = (T *)to_;                                                                         \
        const T *from = (const T *)from_;                                                         \
        if (rows < k || cols < k) {                                                               \
            for (ptrdiff_t c = 0; c < cols; c++)                                                  \
                for (ptrdiff_t r = 0; r < rows; r++)                                              \
                    to[c * to_step + r] = from[r * from_step + c];                                \
            return;                                                                               \
        }                                                                                         \
        for (ptrdiff_t c = 0; c < cols; c += k) {                                                 \
            if (c > cols - k) c = cols - k; /* (some elements are moved again) */                 \
            for (ptrdiff_t r = 0; r < rows; r += k) {                                             \
                if (r > rows - k) r = rows - k;                                                   \
                transpose_block_##name(to + c * to_step + r, to_step, from + r * from_step + c,   \
                                       from_step);                                                \
            }                                                                                     \
        }                                                                                         \
    }
DEFINE_TRANSPOSE(1, uint8_t, 16) DEFINE_TRANSPOSE(2, uint16_t, 8)
DEFINE_TRANSPOSE(4, uint32_t, 4) DEFINE_TRANSPOSE(8, uint64_t, 2)

#ifdef __AVX2__
/* 16 bytes of row i, and of the one that is half a block below. */
#define TWO_ROWS(i, half, at)                                                                     \
    _mm256_loadu2_m128i((const __m128i *)(from + ((i) + half) * from_step + (at)),                \
                        (const __m128i *)(from + (i) * from_step + (at)))
#define TO_COLUMN(c, v) _mm256_storeu_si256((__m256i *)(to + (c) * to_step), v)
INLINE void transpose_block_wide_2(uint16_t *to, ptrdiff_t to_step, const uint16_t *from,
                                   ptrdiff_t from_step) {
    for (int c = 0; c < 16; c += 8) {
        __m256i block[8], next[8];
        for (int i = 0; i < 8; i++) block[i] = TWO_ROWS(i, 8, c);
        for (int round = 1; round < 8; round *= 2) {
            for (int i = 0; i < 4; i++) {
                next[2 * i] = _mm256_unpacklo_epi16(block[i], block[i + 4]);
                next[2 * i + 1] = _mm256_unpackhi_epi16(block[i], block[i + 4]);
            }
            for (int i = 0; i < 8; i++) block[i] = next[i];
        }
        for (int i = 0; i < 8; i++) TO_COLUMN(c + i, block[i]);
    }
}
INLINE void transpose_block_wide_4(uint32_t *to, ptrdiff_t to_step, const uint32_t *from,
                                   ptrdiff_t from_step) {
    for (int c = 0; c < 8; c += 4) {
        __m256i a = TWO_ROWS(0, 4, c), b = TWO_ROWS(1, 4, c);
        __m256i d = TWO_ROWS(2, 4, c), e = TWO_ROWS(3, 4, c);
        __m256i ab = _mm256_unpacklo_epi32(a, b), de = _mm256_unpacklo_epi32(d, e);
        TO_COLUMN(c, _mm256_unpacklo_epi64(ab, de));
        TO_COLUMN(c + 1, _mm256_unpackhi_epi64(ab, de));
        ab = _mm256_unpackhi_epi32(a, b), de = _mm256_unpackhi_epi32(d, e);
        TO_COLUMN(c + 2, _mm256_unpacklo_epi64(ab, de));
        TO_COLUMN(c + 3, _mm256_unpackhi_epi64(ab, de));
    }
}
INLINE void transpose_block_wide_8(uint64_t *to, ptrdiff_t to_step, const uint64_t *from,
                                   ptrdiff_t from_step) {
    for (int c = 0; c < 4; c += 2) {
        __m256i a = TWO_ROWS(0, 2, c), b = TWO_ROWS(1, 2, c);
        TO_COLUMN(c, _mm256_unpacklo_epi64(a, b));
        TO_COLUMN(c + 1, _mm256_unpackhi_epi64(a, b));
    }
}
DEFINE_TRANSPOSE(wide_2, uint16_t, 16)
DEFINE_TRANSPOSE(wide_4, uint32_t, 8) DEFINE_TRANSPOSE(wide_8, uint64_t, 4)
#define WIDE_TRANSPOSE(bytes) transpose_wide_##bytes
#else
#define WIDE_TRANSPOSE(bytes) transpose_##bytes
#endif

static void transpose(void *to, ptrdiff_t to_step, const void *from, ptrdiff_t from_step,
                      ptrdiff_t rows, ptrdiff_t cols, int bytes) {
    const int is_wide = rows * bytes >= 32 && cols * bytes >= 32;
    const int is_narrow = cols * bytes < 16 && rows * bytes > 16 && from_step * bytes >= 16;
    if (is_narrow && bytes == 1)
        transpose_narrow_1(to, to_step, from, from_step, rows, cols);
    else if (is_narrow && bytes == 2)
        transpose_narrow_2(to, to_step, from, from_step, rows, cols);
    else if (bytes == 1 && 8 <= rows && rows < 16 && cols >= 16)
        transpose_few(to, to_step, from, from_step, rows, cols);
    else if (bytes == 1)
        transpose_1(to, to_step, from, from_step, rows, cols);
    else if (bytes == 2)
        (is_wide ? WIDE_TRANSPOSE(2) : transpose_2)(to, to_step, from, from_step, rows, cols);
    else if (bytes == 4)
        (is_wide ? WIDE_TRANSPOSE(4) : transpose_4)(to, to_step, from, from_step, rows, cols);
    else
        (is_wide ? WIDE_TRANSPOSE(8) : transpose_8)(to, to_step, from, from_step, rows, cols);
}

#endif
