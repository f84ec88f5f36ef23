/* Keys: every dtype as a signed integer with the same order, wide enough for a position as well.
 *
 * The bits b of a float become b ^ ((b >> top) & max), which orders like the number. Integers are
 * widened, or flipped by their sign bit. KEY_MIN is the key of no element: margins hold it. A NaN
 * becomes one key, above everything (nan="propagate") or below everything but a margin
 * (nan="ignore"), so that no kernel knows the rules of NaN. Under ZEROS_EQUAL, -0.0 takes the key
 * of +0.0, because two equal maxima must tie. Under MINIMUM keys of numbers are inverted, so that
 * the greatest key is that of the least number. The key of a NaN stays.
 */
#ifndef FASTPOOL_KEYS_H
#define FASTPOOL_KEYS_H

#include "vector.h"

enum dtype_code { F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, BOOL, DTYPES };
static const unsigned char dtype_bytes[DTYPES] = {2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1};

enum key_rule { NAN_IGNORE = 1, ZEROS_EQUAL = 2, MINIMUM = 4 };

/* Make keys of `rows` rows of n elements, and elements of keys. */
typedef void (*keys_load_t)(void *keys, ptrdiff_t keys_step, const void *x, ptrdiff_t x_step,
                            size_t rows, size_t n, int rule);
typedef keys_load_t keys_store_t;

#define KEY_MIN_8 INT8_MIN
#define KEY_MIN_16 INT16_MIN
#define KEY_MIN_32 INT32_MIN
#define KEY_MIN_64 INT64_MIN
#define SELECT(m, a, b) (((a) & (m)) | ((b) & ~(m)))

/* A vector of elements of type T as a vector of keys, and back. */
#ifndef KEYS_OF
#define KEYS_OF(stored, T, keys) __builtin_convertvector(stored, keys)
#define STORED_OF(key, T, stored) __builtin_convertvector(key, stored)
#endif

/* One loader and one storer. S is the signed integer of the stored width, L the bits of a key.
 * TO_KEY turns the stored bits v (a vector of S) into keys k of that width, inverted by `flip`.
 * WIDEN is the type that they are widened from: S, or its unsigned twin where the values are
 * unsigned and keys are wider. LOWEST is the key of the value that never wins, which is the
 * greatest one under MINIMUM. */
#define DEFINE_KEYS(NAME, S, WIDEN, L, LOWEST, TO_KEY, FROM_KEY)                                  \
    typedef VECTOR(S, VEC_BYTES * sizeof(S) / sizeof(int##L##_t)) NAME##_L##L##_stored;           \
    typedef VECTOR(WIDEN, VEC_BYTES * sizeof(S) / sizeof(int##L##_t)) NAME##_L##L##_widen;        \
    INLINE vec_t NAME##_L##L##_key(NAME##_L##L##_stored v, int rule) {                            \
        NAME##_L##L##_stored k;                                                                   \
        const S flip = (S)-((rule & MINIMUM) != 0);                                               \
        TO_KEY(S)                                                                                 \
        return (vec_t)KEYS_OF((NAME##_L##L##_widen)k, WIDEN, vec_i##L);                           \
    }                                                                                             \
    INLINE NAME##_L##L##_stored NAME##_L##L##_value(vec_t keys, int rule) {                       \
        const S flip = (S)-((rule & MINIMUM) != 0);                                               \
        vec_i##L key = (vec_i##L)keys, margin = (key == KEY_MIN_##L);                             \
        key = SELECT(margin, (vec_i##L){0} + (int##L##_t)(LOWEST), key);                          \
        NAME##_L##L##_stored k = STORED_OF(key, S, NAME##_L##L##_stored), v;                      \
        FROM_KEY(S)                                                                               \
        return v;                                                                                 \
    }                                                                                             \
    static void NAME##_L##L##_load(void *keys, ptrdiff_t keys_step, const void *x,                \
                                   ptrdiff_t x_step, size_t rows, size_t n, int rule) {           \
        const size_t lanes = VEC_BYTES / sizeof(int##L##_t);                                      \
        for (ptrdiff_t r = 0; r < (ptrdiff_t)rows; r++) {                                         \
            const S *from = (const S *)x + r * x_step;                                            \
            int##L##_t *to = (int##L##_t *)keys + r * keys_step;                                  \
            NAME##_L##L##_stored v;                                                               \
            if (n < lanes) {                                                                      \
                vec_t bits = vec_load_part(from, n * sizeof(S));                                  \
                memcpy(&v, &bits, sizeof v);                                                      \
                vec_store_part(to, NAME##_L##L##_key(v, rule), n * sizeof *to);                   \
                continue;                                                                         \
            }                                                                                     \
            for (size_t i = 0;; i += lanes) {                                                     \
                if (i + lanes > n) i = n - lanes; /* the last vector overlaps the one before */   \
                memcpy(&v, from + i, sizeof v);                                                   \
                vec_store(to + i, NAME##_L##L##_key(v, rule));                                    \
                if (i + lanes == n) break;                                                        \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_L##L##_store(void *y, ptrdiff_t y_step, const void *keys,                  \
                                    ptrdiff_t keys_step, size_t rows, size_t n, int rule) {       \
        const size_t lanes = VEC_BYTES / sizeof(int##L##_t);                                      \
        for (ptrdiff_t r = 0; r < (ptrdiff_t)rows; r++) {                                         \
            const int##L##_t *from = (const int##L##_t *)keys + r * keys_step;                    \
            S *to = (S *)y + r * y_step;                                                          \
            NAME##_L##L##_stored v;                                                               \
            if (n < lanes) {                                                                      \
                vec_t bits = {0};                                                                 \
                v = NAME##_L##L##_value(vec_load_part(from, n * sizeof *from), rule);             \
                memcpy(&bits, &v, sizeof v);                                                      \
                vec_store_part(to, bits, n * sizeof(S));                                          \
                continue;                                                                         \
            }                                                                                     \
            for (size_t i = 0;; i += lanes) {                                                     \
                if (i + lanes > n) i = n - lanes;                                                 \
                v = NAME##_L##L##_value(vec_load(from + i), rule);                                \
                memcpy(to + i, &v, sizeof v);                                                     \
                if (i + lanes == n) break;                                                        \
            }                                                                                     \
        }                                                                                         \
    }

#define SAME_KEY(S) k = v ^ flip;
#define SAME_VALUE(S) v = k ^ flip;
/* (any byte but 0 is True, and a true comparison is -1) */
#define BOOL_KEY(S) k = -(v != 0) ^ flip;
#define BOOL_VALUE(S) v = (k ^ flip) & 1;
#define TOP_BIT(S) ((S)(1ULL << (sizeof(S) * 8 - 1))) /* (a shift into an S's sign is undefined) */
#define FLIP_KEY(S) k = v ^ (S)(TOP_BIT(S) ^ flip);
#define FLIP_VALUE(S) v = k ^ (S)(TOP_BIT(S) ^ flip);
#define FLOAT_MAX_KEY(S) ((S)~TOP_BIT(S))
/* `k -= (k == -1)`: a true comparison is -1, and -0.0 has the key -1 */
#define FLOAT_KEY(S, INF)                                                                         \
    const S top = FLOAT_MAX_KEY(S), nan_key = (rule & NAN_IGNORE) ? (S)(-top) : top;              \
    __typeof__(v) nan = ((v & top) > (S)(INF));                                                   \
    k = v ^ ((v >> (S)(sizeof(S) * 8 - 1)) & top);                                                \
    if (rule & ZEROS_EQUAL) k -= (k == (S)-1);                                                    \
    k = SELECT(nan, (__typeof__(v)){0} + nan_key, k ^ flip);
#define FLOAT_VALUE(S)                                                                            \
    k ^= flip;                                                                                    \
    v = k ^ ((k >> (S)(sizeof(S) * 8 - 1)) & FLOAT_MAX_KEY(S));
#define F16_KEY(S) FLOAT_KEY(S, 0x7c00)
#define BF16_KEY(S) FLOAT_KEY(S, 0x7f80)
#define F32_KEY(S) FLOAT_KEY(S, 0x7f800000)
#define F64_KEY(S) FLOAT_KEY(S, 0x7ff0000000000000)

/* The lowest float is -inf. Its key is the negated bits of its magnitude, minus one. The inverted
 * key of +inf equals it. */
#define DEFINE_KEYS_8(M)                                                                          \
    M(i8, int8_t, int8_t, 8, INT8_MIN, SAME_KEY, SAME_VALUE)                                      \
    M(u8, int8_t, int8_t, 8, INT8_MIN, FLIP_KEY, FLIP_VALUE)                                      \
    M(b8, int8_t, int8_t, 8, 0, BOOL_KEY, BOOL_VALUE)
#define DEFINE_KEYS_16(M)                                                                         \
    M(f16, int16_t, int16_t, 16, -0x7c00 - 1, F16_KEY, FLOAT_VALUE)                               \
    M(bf16, int16_t, int16_t, 16, -0x7f80 - 1, BF16_KEY, FLOAT_VALUE)                             \
    M(i8, int8_t, int8_t, 16, INT8_MIN, SAME_KEY, SAME_VALUE)                                     \
    M(u8, int8_t, uint8_t, 16, 0, SAME_KEY, SAME_VALUE)                                           \
    M(b8, int8_t, int8_t, 16, 0, BOOL_KEY, BOOL_VALUE)                                            \
    M(i16, int16_t, int16_t, 16, INT16_MIN, SAME_KEY, SAME_VALUE)                                 \
    M(u16, int16_t, int16_t, 16, INT16_MIN, FLIP_KEY, FLIP_VALUE)
#define DEFINE_KEYS_32(M)                                                                         \
    M(f16, int16_t, int16_t, 32, -0x7c00 - 1, F16_KEY, FLOAT_VALUE)                               \
    M(bf16, int16_t, int16_t, 32, -0x7f80 - 1, BF16_KEY, FLOAT_VALUE)                             \
    M(i8, int8_t, int8_t, 32, INT8_MIN, SAME_KEY, SAME_VALUE)                                     \
    M(u8, int8_t, uint8_t, 32, 0, SAME_KEY, SAME_VALUE)                                           \
    M(b8, int8_t, int8_t, 32, 0, BOOL_KEY, BOOL_VALUE)                                            \
    M(i16, int16_t, int16_t, 32, INT16_MIN, SAME_KEY, SAME_VALUE)                                 \
    M(u16, int16_t, uint16_t, 32, 0, SAME_KEY, SAME_VALUE)                                        \
    M(f32, int32_t, int32_t, 32, -0x7f800000 - 1, F32_KEY, FLOAT_VALUE)                           \
    M(i32, int32_t, int32_t, 32, INT32_MIN, SAME_KEY, SAME_VALUE)                                 \
    M(u32, int32_t, int32_t, 32, INT32_MIN, FLIP_KEY, FLIP_VALUE)
#define DEFINE_KEYS_64(M)                                                                         \
    M(f16, int16_t, int16_t, 64, -0x7c00 - 1, F16_KEY, FLOAT_VALUE)                               \
    M(bf16, int16_t, int16_t, 64, -0x7f80 - 1, BF16_KEY, FLOAT_VALUE)                             \
    M(i8, int8_t, int8_t, 64, INT8_MIN, SAME_KEY, SAME_VALUE)                                     \
    M(u8, int8_t, uint8_t, 64, 0, SAME_KEY, SAME_VALUE)                                           \
    M(b8, int8_t, int8_t, 64, 0, BOOL_KEY, BOOL_VALUE)                                            \
    M(i16, int16_t, int16_t, 64, INT16_MIN, SAME_KEY, SAME_VALUE)                                 \
    M(u16, int16_t, uint16_t, 64, 0, SAME_KEY, SAME_VALUE)                                        \
    M(f32, int32_t, int32_t, 64, -0x7f800000 - 1, F32_KEY, FLOAT_VALUE)                           \
    M(i32, int32_t, int32_t, 64, INT32_MIN, SAME_KEY, SAME_VALUE)                                 \
    M(u32, int32_t, uint32_t, 64, 0, SAME_KEY, SAME_VALUE)                                        \
    M(f64, int64_t, int64_t, 64, -0x7ff0000000000000 - 1, F64_KEY, FLOAT_VALUE)                   \
    M(i64, int64_t, int64_t, 64, INT64_MIN, SAME_KEY, SAME_VALUE)                                 \
    M(u64, int64_t, int64_t, 64, INT64_MIN, FLIP_KEY, FLIP_VALUE)

DEFINE_KEYS_8(DEFINE_KEYS)
DEFINE_KEYS_16(DEFINE_KEYS)
DEFINE_KEYS_32(DEFINE_KEYS)
DEFINE_KEYS_64(DEFINE_KEYS)

/* A row per width of keys, an entry per dtype_code. */
#define ROW_8(what) {0, 0, 0, 0, i8_L8_##what, 0, 0, 0, u8_L8_##what, 0, 0, 0, b8_L8_##what}
#define ROW_16(what)                                                                              \
    {f16_L16_##what, bf16_L16_##what, 0, 0, i8_L16_##what, i16_L16_##what, 0, 0, u8_L16_##what,   \
     u16_L16_##what, 0, 0, b8_L16_##what}
#define ROW_32(what)                                                                              \
    {f16_L32_##what, bf16_L32_##what, f32_L32_##what, 0, i8_L32_##what, i16_L32_##what,           \
     i32_L32_##what, 0, u8_L32_##what, u16_L32_##what, u32_L32_##what, 0, b8_L32_##what}
#define ROW_64(what)                                                                              \
    {f16_L64_##what, bf16_L64_##what, f32_L64_##what, f64_L64_##what, i8_L64_##what,              \
     i16_L64_##what, i32_L64_##what, i64_L64_##what, u8_L64_##what, u16_L64_##what,               \
     u32_L64_##what, u64_L64_##what, b8_L64_##what}
#define KEYS_TABLE(what, type)                                                                    \
    static type const what##_table[4][DTYPES] = {ROW_8(what), ROW_16(what), ROW_32(what),         \
                                                 ROW_64(what)};
KEYS_TABLE(load, keys_load_t)
KEYS_TABLE(store, keys_store_t)
INLINE keys_load_t keys_loader(int code, int key_bytes) {
    return load_table[__builtin_ctz((unsigned)key_bytes)][code];
}
INLINE keys_store_t keys_storer(int code, int key_bytes) {
    return store_table[__builtin_ctz((unsigned)key_bytes)][code];
}

/* ---- does a row of keys hold a margin? ---- */

#define DEFINE_HAS_MARGIN(L)                                                                      \
    static int has_margin_i##L(const int##L##_t *keys, size_t n) {                                \
        const size_t lanes = VEC_BYTES / sizeof(int##L##_t);                                      \
        vec_i##L found = {0};                                                                     \
        size_t i = 0;                                                                             \
        for (; i + lanes <= n; i += lanes) found |= (vec_i##L)vec_load(keys + i) == KEY_MIN_##L;  \
        for (; i < n; i++) found[0] |= keys[i] == KEY_MIN_##L;                                    \
        return vec_any((vec_t)found);                                                             \
    }
DEFINE_HAS_MARGIN(16)
DEFINE_HAS_MARGIN(32)
DEFINE_HAS_MARGIN(64)
#define has_margin(p, n) BY_KEY(has_margin, p)(p, n)

#endif
