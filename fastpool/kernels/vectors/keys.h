/* Keys: every dtype as a signed integer with the same order, wide enough to carry a position beside it.
 *
 * float bits b become b ^ ((b >> top) & max), which orders like the number; integers are widened, or flipped by their
 * sign bit. A key of LANE_MIN is no element at all: it is what margins hold. NaN becomes one key, above everything
 * (propagate) or below everything but a margin (ignore), so that NaN rules end here. With `zeros`, -0.0 takes the
 * key of +0.0: two equal maxima must tie.
 */
#ifndef FASTPOOL_KEYS_H
#define FASTPOOL_KEYS_H

#include "vector.h"

enum dtype_code { F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, BOOL, DTYPES };
static const unsigned char dtype_bytes[DTYPES] = {2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1};

enum key_rule { NAN_IGNORE = 1, ZEROS_EQUAL = 2 };

typedef void (*keys_load_t)(void *keys, ptrdiff_t keys_step, const void *x, ptrdiff_t x_step, size_t rows, size_t n, int rule);
typedef void (*keys_store_t)(void *y, ptrdiff_t y_step, const void *keys, ptrdiff_t keys_step, size_t rows, size_t n);

#define KEY_MIN_16 INT16_MIN
#define KEY_MIN_32 INT32_MIN
#define KEY_MIN_64 INT64_MIN
#define SELECT(m, a, b) (((a) & (m)) | ((b) & ~(m)))

/* A vector of `T`s, all of one or its first bytes, as one of lanes, and back. gcc converts element by element for NEON. */
#if defined(__aarch64__) && !defined(__clang__)
INLINE vec_t vec_wider(vec_t v, size_t bytes, int is_signed) {
    if (bytes == 1) return is_signed ? (vec_t)vmovl_s8(vget_low_s8((int8x16_t)v)) : (vec_t)vmovl_u8(vget_low_u8((uint8x16_t)v));
    if (bytes == 2) return is_signed ? (vec_t)vmovl_s16(vget_low_s16((int16x8_t)v)) : (vec_t)vmovl_u16(vget_low_u16((uint16x8_t)v));
    return is_signed ? (vec_t)vmovl_s32(vget_low_s32((int32x4_t)v)) : (vec_t)vmovl_u32(vget_low_u32((uint32x4_t)v));
}
INLINE vec_t vec_narrower(vec_t v, size_t bytes) {
    return bytes == 8 ? vec_concat_even_4(v, v) : bytes == 4 ? vec_concat_even_2(v, v) : vec_concat_even_1(v, v);
}
#define KEYS_OF(stored, T, lanes) ({                                                                         \
    __typeof__(stored) stored_ = (stored);                                                                     \
    vec_t wide_ = {0};                                                                                         \
    memcpy(&wide_, &stored_, sizeof stored_);                                                                  \
    for (size_t b_ = sizeof(T); b_ < sizeof((lanes){0}[0]); b_ *= 2) wide_ = vec_wider(wide_, b_, (T)-1 < 0);  \
    wide_; })
#define STORED_OF(lane, T, stored) ({                                                                         \
    vec_t narrow_ = (vec_t)(lane);                                                                             \
    stored stored_;                                                                                            \
    for (size_t b_ = sizeof((lane)[0]); b_ > sizeof(T); b_ /= 2) narrow_ = vec_narrower(narrow_, b_);          \
    memcpy(&stored_, &narrow_, sizeof stored_);                                                                \
    stored_; })
#else
#define KEYS_OF(stored, T, lanes) __builtin_convertvector(stored, lanes)
#define STORED_OF(lane, T, stored) __builtin_convertvector(lane, stored)
#endif

/* One loader and one storer. S: signed integer of the stored width, W its bits; L: lane bits. TO_KEY turns the stored
 * bits `v` (a vector of S) into keys `k` of the same width; WIDEN names the type they are widened from (S, or its
 * unsigned twin where the values are unsigned and the lane is wider); LOWEST is the key of the dtype's lowest value. */
#define DEFINE_KEYS(NAME, S, WIDEN, L, LOWEST, TO_KEY, FROM_KEY)                                                    \
    typedef VECTOR(S, VEC_BYTES * sizeof(S) / sizeof(int##L##_t)) NAME##_L##L##_stored;                            \
    typedef VECTOR(WIDEN, VEC_BYTES * sizeof(S) / sizeof(int##L##_t)) NAME##_L##L##_widen;                         \
    INLINE vec_t NAME##_L##L##_key(NAME##_L##L##_stored v, int rule) {                                             \
        NAME##_L##L##_stored k;                                                                                    \
        (void)rule;                                                                                                \
        TO_KEY(S)                                                                                                  \
        return (vec_t)KEYS_OF((NAME##_L##L##_widen)k, WIDEN, vec_i##L);                                           \
    }                                                                                                              \
    INLINE NAME##_L##L##_stored NAME##_L##L##_value(vec_t key) {                                                   \
        vec_i##L lane = (vec_i##L)key, margin = (lane == KEY_MIN_##L);                                            \
        lane = SELECT(margin, (vec_i##L){0} + (int##L##_t)(LOWEST), lane);                                         \
        NAME##_L##L##_stored k = STORED_OF(lane, S, NAME##_L##L##_stored), v;                                      \
        FROM_KEY(S)                                                                                                \
        return v;                                                                                                  \
    }                                                                                                              \
    static void NAME##_L##L##_load(void *keys, ptrdiff_t keys_step, const void *x, ptrdiff_t x_step, size_t rows,        \
                                   size_t n, int rule) {                                                           \
        const size_t lanes = VEC_BYTES / sizeof(int##L##_t);                                                       \
        for (ptrdiff_t r = 0; r < (ptrdiff_t)rows; r++) {                                                                        \
            const S *from = (const S *)x + r * x_step;                                                             \
            int##L##_t *to = (int##L##_t *)keys + r * keys_step;                                                   \
            NAME##_L##L##_stored v;                                                                                \
            if (n < lanes) {                                                                                       \
                vec_t bits = vec_load_part(from, n * sizeof(S));                                                   \
                memcpy(&v, &bits, sizeof v);                                                                       \
                vec_store_part(to, NAME##_L##L##_key(v, rule), n * sizeof *to);                                    \
                continue;                                                                                          \
            }                                                                                                      \
            for (size_t i = 0;; i += lanes) {                                                                      \
                if (i + lanes > n) i = n - lanes; /* the last vector overlaps the one before */                    \
                memcpy(&v, from + i, sizeof v);                                                                    \
                vec_store(to + i, NAME##_L##L##_key(v, rule));                                                     \
                if (i + lanes == n) break;                                                                         \
            }                                                                                                      \
        }                                                                                                          \
    }                                                                                                              \
    static void NAME##_L##L##_store(void *y, ptrdiff_t y_step, const void *keys, ptrdiff_t keys_step, size_t rows, \
                                    size_t n) {                                                                    \
        const size_t lanes = VEC_BYTES / sizeof(int##L##_t);                                                       \
        for (ptrdiff_t r = 0; r < (ptrdiff_t)rows; r++) {                                                                        \
            const int##L##_t *from = (const int##L##_t *)keys + r * keys_step;                                     \
            S *to = (S *)y + r * y_step;                                                                           \
            NAME##_L##L##_stored v;                                                                                \
            if (n < lanes) {                                                                                       \
                vec_t bits = {0};                                                                                  \
                v = NAME##_L##L##_value(vec_load_part(from, n * sizeof *from));                                    \
                memcpy(&bits, &v, sizeof v);                                                                       \
                vec_store_part(to, bits, n * sizeof(S));                                                           \
                continue;                                                                                          \
            }                                                                                                      \
            for (size_t i = 0;; i += lanes) {                                                                      \
                if (i + lanes > n) i = n - lanes;                                                                  \
                v = NAME##_L##L##_value(vec_load(from + i));                                                       \
                memcpy(to + i, &v, sizeof v);                                                                      \
                if (i + lanes == n) break;                                                                         \
            }                                                                                                      \
        }                                                                                                          \
    }

#define SAME_KEY(S) k = v;
#define SAME_VALUE(S) v = k;
/* (any byte but 0 is True, and a true comparison is -1) */
#define BOOL_KEY(S) k = -(v != 0);
#define TOP_BIT(S) ((S)(1ULL << (sizeof(S) * 8 - 1))) /* (a shift into the sign of an S would be undefined) */
#define FLIP_KEY(S) k = v ^ TOP_BIT(S);
#define FLIP_VALUE(S) v = k ^ TOP_BIT(S);
#define FLOAT_MAX_KEY(S) ((S)~TOP_BIT(S))
/* `k -= (k == -1)`: a true comparison is -1, and -0.0 has the key -1 */
#define FLOAT_KEY(S, INF)                                                                  \
    const S top = FLOAT_MAX_KEY(S), nan_key = (rule & NAN_IGNORE) ? (S)(-top) : top;       \
    __typeof__(v) nan = ((v & top) > (S)(INF));                                            \
    k = v ^ ((v >> (S)(sizeof(S) * 8 - 1)) & top);                                         \
    k = SELECT(nan, (__typeof__(v)){0} + nan_key, k);                                      \
    if (rule & ZEROS_EQUAL) k -= (k == (S)-1);
#define FLOAT_VALUE(S) v = k ^ ((k >> (S)(sizeof(S) * 8 - 1)) & FLOAT_MAX_KEY(S));
#define F16_KEY(S) FLOAT_KEY(S, 0x7c00)
#define BF16_KEY(S) FLOAT_KEY(S, 0x7f80)
#define F32_KEY(S) FLOAT_KEY(S, 0x7f800000)
#define F64_KEY(S) FLOAT_KEY(S, 0x7ff0000000000000)

/* the lowest floating value is -inf, whose key is -inf's magnitude bits negated, minus one */
#define DEFINE_KEYS_16(M)                                                       \
    M(f16, int16_t, int16_t, 16, -0x7c00 - 1, F16_KEY, FLOAT_VALUE)              \
    M(bf16, int16_t, int16_t, 16, -0x7f80 - 1, BF16_KEY, FLOAT_VALUE)            \
    M(i8, int8_t, int8_t, 16, INT8_MIN, SAME_KEY, SAME_VALUE)                    \
    M(u8, int8_t, uint8_t, 16, 0, SAME_KEY, SAME_VALUE)                          \
    M(b8, int8_t, int8_t, 16, 0, BOOL_KEY, SAME_VALUE)                           \
    M(i16, int16_t, int16_t, 16, INT16_MIN, SAME_KEY, SAME_VALUE)                \
    M(u16, int16_t, int16_t, 16, INT16_MIN, FLIP_KEY, FLIP_VALUE)
#define DEFINE_KEYS_32(M)                                                       \
    M(f16, int16_t, int16_t, 32, -0x7c00 - 1, F16_KEY, FLOAT_VALUE)              \
    M(bf16, int16_t, int16_t, 32, -0x7f80 - 1, BF16_KEY, FLOAT_VALUE)            \
    M(i8, int8_t, int8_t, 32, INT8_MIN, SAME_KEY, SAME_VALUE)                    \
    M(u8, int8_t, uint8_t, 32, 0, SAME_KEY, SAME_VALUE)                          \
    M(b8, int8_t, int8_t, 32, 0, BOOL_KEY, SAME_VALUE)                           \
    M(i16, int16_t, int16_t, 32, INT16_MIN, SAME_KEY, SAME_VALUE)                \
    M(u16, int16_t, uint16_t, 32, 0, SAME_KEY, SAME_VALUE)                       \
    M(f32, int32_t, int32_t, 32, -0x7f800000 - 1, F32_KEY, FLOAT_VALUE)          \
    M(i32, int32_t, int32_t, 32, INT32_MIN, SAME_KEY, SAME_VALUE)                \
    M(u32, int32_t, int32_t, 32, INT32_MIN, FLIP_KEY, FLIP_VALUE)
#define DEFINE_KEYS_64(M)                                                       \
    M(f16, int16_t, int16_t, 64, -0x7c00 - 1, F16_KEY, FLOAT_VALUE)              \
    M(bf16, int16_t, int16_t, 64, -0x7f80 - 1, BF16_KEY, FLOAT_VALUE)            \
    M(i8, int8_t, int8_t, 64, INT8_MIN, SAME_KEY, SAME_VALUE)                    \
    M(u8, int8_t, uint8_t, 64, 0, SAME_KEY, SAME_VALUE)                          \
    M(b8, int8_t, int8_t, 64, 0, BOOL_KEY, SAME_VALUE)                           \
    M(i16, int16_t, int16_t, 64, INT16_MIN, SAME_KEY, SAME_VALUE)                \
    M(u16, int16_t, uint16_t, 64, 0, SAME_KEY, SAME_VALUE)                       \
    M(f32, int32_t, int32_t, 64, -0x7f800000 - 1, F32_KEY, FLOAT_VALUE)          \
    M(i32, int32_t, int32_t, 64, INT32_MIN, SAME_KEY, SAME_VALUE)                \
    M(u32, int32_t, uint32_t, 64, 0, SAME_KEY, SAME_VALUE)                       \
    M(f64, int64_t, int64_t, 64, -0x7ff0000000000000 - 1, F64_KEY, FLOAT_VALUE)  \
    M(i64, int64_t, int64_t, 64, INT64_MIN, SAME_KEY, SAME_VALUE)                \
    M(u64, int64_t, int64_t, 64, INT64_MIN, FLIP_KEY, FLIP_VALUE)

DEFINE_KEYS_16(DEFINE_KEYS)
DEFINE_KEYS_32(DEFINE_KEYS)
DEFINE_KEYS_64(DEFINE_KEYS)

#define KEYS_TABLE(what, type)                                                                                      \
    static type const what##_table[3][DTYPES] = {                                                                  \
        {f16_L16_##what, bf16_L16_##what, 0, 0, i8_L16_##what, i16_L16_##what, 0, 0,                                \
         u8_L16_##what, u16_L16_##what, 0, 0, b8_L16_##what},                                                                      \
        {f16_L32_##what, bf16_L32_##what, f32_L32_##what, 0, i8_L32_##what, i16_L32_##what, i32_L32_##what, 0,      \
         u8_L32_##what, u16_L32_##what, u32_L32_##what, 0, b8_L32_##what},                                                         \
        {f16_L64_##what, bf16_L64_##what, f32_L64_##what, f64_L64_##what, i8_L64_##what, i16_L64_##what,            \
         i32_L64_##what, i64_L64_##what, u8_L64_##what, u16_L64_##what, u32_L64_##what, u64_L64_##what, b8_L64_##what}};
KEYS_TABLE(load, keys_load_t)
KEYS_TABLE(store, keys_store_t)
INLINE keys_load_t keys_loader(int code, int key_bytes) { return load_table[key_bytes >> 2 > 1 ? 2 : key_bytes >> 2][code]; }
INLINE keys_store_t keys_storer(int code, int key_bytes) { return store_table[key_bytes >> 2 > 1 ? 2 : key_bytes >> 2][code]; }

/* ---- is there a NaN: a flag that kernels carry along; is there a margin's key ---- */

#if VEC_BYTES == 64
typedef uint64_t vec_flag;
INLINE vec_flag nan_in_f32(vec_t a, vec_t b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q); }
INLINE vec_flag nan_in_f64(vec_t a, vec_t b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q); }
INLINE int flag_any(vec_flag f) { return f != 0; }
#else
typedef vec_t vec_flag;
#if VEC_BYTES == 32
INLINE vec_flag nan_in_f32(vec_t a, vec_t b) { return (vec_t)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q); }
INLINE vec_flag nan_in_f64(vec_t a, vec_t b) { return (vec_t)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q); }
#elif defined(__SSE2__)
INLINE vec_flag nan_in_f32(vec_t a, vec_t b) { return (vec_t)_mm_cmpunord_ps((__m128)a, (__m128)b); }
INLINE vec_flag nan_in_f64(vec_t a, vec_t b) { return (vec_t)_mm_cmpunord_pd((__m128d)a, (__m128d)b); }
#else
INLINE vec_flag nan_in_f32(vec_t a, vec_t b) {
    return (vec_t)((vec_f32)a != (vec_f32)a) | (vec_t)((vec_f32)b != (vec_f32)b);
}
INLINE vec_flag nan_in_f64(vec_t a, vec_t b) {
    return (vec_t)((vec_f64)a != (vec_f64)a) | (vec_t)((vec_f64)b != (vec_f64)b);
}
#endif
INLINE int flag_any(vec_flag f) {
    uint64_t words[VEC_BYTES / 8], any = 0;
    memcpy(words, &f, VEC_BYTES);
    for (size_t i = 0; i < VEC_BYTES / 8; i++) any |= words[i];
    return any != 0;
}
#endif

#if VEC_BYTES == 64
INLINE vec_flag flag_none(void) { return 0; }
#else
INLINE vec_flag flag_none(void) { return (vec_flag){0}; }
#endif
/* `seen`, or is a NaN in a or b: two vectors cost one comparison */
#if VEC_BYTES == 64
#define FLAG_OR _kor_mask64 /* stays in mask registers */
#else
#define FLAG_OR(a, b) ((a) | (b))
#endif
INLINE vec_flag flag_or(vec_flag a, vec_flag b) { return FLAG_OR(a, b); }
INLINE vec_flag nan_or_f32(vec_flag seen, vec_t a, vec_t b) { return FLAG_OR(seen, nan_in_f32(a, b)); }
INLINE vec_flag nan_or_f64(vec_flag seen, vec_t a, vec_t b) { return FLAG_OR(seen, nan_in_f64(a, b)); }
#define NAN_OR(tag) INLINE vec_flag nan_or_##tag(vec_flag seen, vec_t a, vec_t b) { (void)a, (void)b; return seen; }
NAN_OR(i8) NAN_OR(u8) NAN_OR(i16) NAN_OR(u16) NAN_OR(i32) NAN_OR(u32) NAN_OR(i64) NAN_OR(u64)
#define nan_or(seen, a, b, p) BY_TYPE(nan_or, p)(seen, a, b)

#define DEFINE_HAS_MARGIN(L)                                                                            \
    static int has_margin_i##L(const int##L##_t *keys, size_t n) {                                      \
        int found = 0;                                                                                  \
        for (size_t i = 0; i < n; i++) found |= keys[i] == KEY_MIN_##L;                                \
        return found;                                                                                   \
    }
DEFINE_HAS_MARGIN(16)
DEFINE_HAS_MARGIN(32)
DEFINE_HAS_MARGIN(64)
#define has_margin(p, n) BY_KEY(has_margin, p)(p, n)

/* ---- positions to indices: base + j * step + position * scale, the position unsigned ---- */

#define DEFINE_STORE_INDICES(L, I)                                                                             \
    static void store_indices_##L##_##I(int##I##_t *to, const int##L##_t *from, size_t n, int64_t base,        \
                                        int64_t step, int64_t scale) {                                         \
        typedef VECTOR(uint##L##_t, VEC_BYTES * L / 64) narrow_t;                                              \
        typedef VECTOR(int##I##_t, VEC_BYTES * I / 64) index_t;                                                \
        const size_t lanes = VEC_BYTES / 8;                                                                    \
        size_t j = 0;                                                                                          \
        vec_i64 place = (vec_i64){0} + base;                                                                   \
        for (size_t i = 0; i < lanes; i++) place[i] += (int64_t)i * step;                                      \
        for (; j + lanes <= n; j += lanes, place += (int64_t)lanes * step) {                                   \
            narrow_t position;                                                                                 \
            memcpy(&position, from + j, sizeof position);                                                      \
            vec_i64 wide = __builtin_convertvector(position, vec_i64);                                         \
            if (scale != 1) wide *= scale;                                                                     \
            index_t index = __builtin_convertvector(wide + place, index_t);                                    \
            memcpy(to + j, &index, sizeof index);                                                              \
        }                                                                                                      \
        for (; j < n; j++) to[j] = (int##I##_t)(base + (int64_t)j * step + (int64_t)(uint##L##_t)from[j] * scale); \
    }
DEFINE_STORE_INDICES(16, 32)
DEFINE_STORE_INDICES(32, 32)
DEFINE_STORE_INDICES(64, 32)
DEFINE_STORE_INDICES(16, 64)
DEFINE_STORE_INDICES(32, 64)
DEFINE_STORE_INDICES(64, 64)
#define store_indices(to, from, n, base, step, scale)                                                   \
    _Generic(*(to),                                                                                     \
        int32_t: _Generic(*(from), int16_t: store_indices_16_32, int32_t: store_indices_32_32,          \
                          int64_t: store_indices_64_32),                                                \
        int64_t: _Generic(*(from), int16_t: store_indices_16_64, int32_t: store_indices_32_64,          \
                          int64_t: store_indices_64_64))(to, from, n, base, step, scale)

/* ---- the same in registers: a vector of positions, unsigned, as vectors of 64-bit integers ---- */

#if VEC_BYTES == 64
INLINE void vec_widen_i16(vec_t v, vec_t *to) {
    to[0] = (vec_t)_mm512_cvtepu16_epi64(_mm512_castsi512_si128((__m512i)v));
    to[1] = (vec_t)_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32((__m512i)v, 1));
    to[2] = (vec_t)_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32((__m512i)v, 2));
    to[3] = (vec_t)_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32((__m512i)v, 3));
}
INLINE void vec_widen_i32(vec_t v, vec_t *to) {
    to[0] = (vec_t)_mm512_cvtepu32_epi64(_mm512_castsi512_si256((__m512i)v));
    to[1] = (vec_t)_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64((__m512i)v, 1));
}
#elif VEC_BYTES == 32
INLINE void vec_widen_i16(vec_t v, vec_t *to) {
    __m128i low = _mm256_castsi256_si128((__m256i)v), high = _mm256_extracti128_si256((__m256i)v, 1);
    to[0] = (vec_t)_mm256_cvtepu16_epi64(low);
    to[1] = (vec_t)_mm256_cvtepu16_epi64(_mm_srli_si128(low, 8));
    to[2] = (vec_t)_mm256_cvtepu16_epi64(high);
    to[3] = (vec_t)_mm256_cvtepu16_epi64(_mm_srli_si128(high, 8));
}
INLINE void vec_widen_i32(vec_t v, vec_t *to) {
    to[0] = (vec_t)_mm256_cvtepu32_epi64(_mm256_castsi256_si128((__m256i)v));
    to[1] = (vec_t)_mm256_cvtepu32_epi64(_mm256_extracti128_si256((__m256i)v, 1));
}
#else
INLINE void vec_widen_i32(vec_t v, vec_t *to) {
    to[0] = SHUFFLE(vec_u32, v, (vec_u32){0}, 0, 4, 1, 5);
    to[1] = SHUFFLE(vec_u32, v, (vec_u32){0}, 2, 6, 3, 7);
}
INLINE void vec_widen_i16(vec_t v, vec_t *to) {
    vec_widen_i32(SHUFFLE(vec_u16, v, (vec_u16){0}, 0, 8, 1, 9, 2, 10, 3, 11), to);
    vec_widen_i32(SHUFFLE(vec_u16, v, (vec_u16){0}, 4, 12, 5, 13, 6, 14, 7, 15), to + 2);
}
#endif
INLINE void vec_widen_i64(vec_t v, vec_t *to) { to[0] = v; }

/* The first n lanes as indices of 4 or 8 bytes: base + position + lane * step, `ramp` being lane * step. Nearly all are
 * whole vectors of 8 bytes; a place for the rest in memory would be written for those too. */
#define DEFINE_STORE_VEC_INDICES(L)                                                                                      \
    INLINE vec_t index_piece_i##L(vec_t wide, int i, int64_t base, vec_t ramp, int64_t step) {                     \
        return (vec_t)((vec_i64)wide + ((vec_i64)ramp + (base + i * (int64_t)(VEC_BYTES / 8) * step)));            \
    }                                                                                                              \
    static __attribute__((noinline)) void store_some_indices_i##L(char *to, vec_t places, size_t n, int64_t base,    \
                                                                vec_t ramp, int64_t step, int bytes) {             \
        vec_t index[5] = {ramp, ramp, ramp, ramp, ramp};                                                           \
        int i;                                                                                                     \
        vec_widen_i##L(places, index);                                                                             \
        for (i = 0; i < 64 / L; i++) index[i] = index_piece_i##L(index[i], i, base, ramp, step);                   \
        if (bytes == 4)                                                                                            \
            for (i = 0; i < (64 / L + 1) / 2; i++) index[i] = vec_concat_even_4(index[2 * i], index[2 * i + 1]);         \
        n *= (size_t)bytes;                                                                                        \
        for (i = 0; n >= VEC_BYTES; i++, n -= VEC_BYTES) vec_store(to + i * VEC_BYTES, index[i]);                  \
        if (n) vec_store_part(to + i * VEC_BYTES, index[i], n);                                                    \
    }                                                                                                              \
    INLINE void store_vec_indices_i##L(char *to, vec_t places, size_t n, int64_t base, vec_t ramp, int64_t step, int bytes) { \
        vec_t wide[4];                                                                                             \
        if (n < VEC_BYTES * 8 / L || bytes != 8) {                                                                 \
            store_some_indices_i##L(to, places, n, base, ramp, step, bytes);                                         \
            return;                                                                                                \
        }                                                                                                          \
        vec_widen_i##L(places, wide);                                                                              \
        for (int i = 0; i < 64 / L; i++) vec_store(to + i * VEC_BYTES, index_piece_i##L(wide[i], i, base, ramp, step)); \
    }
DEFINE_STORE_VEC_INDICES(16)
DEFINE_STORE_VEC_INDICES(32)
DEFINE_STORE_VEC_INDICES(64)
#define store_vec_indices(to, places, n, base, ramp, step, bytes, p) \
    BY_KEY(store_vec_indices, p)(to, places, n, base, ramp, step, bytes)
INLINE vec_t vec_iota(int64_t step) {
    vec_i64 ramp = {0};
    for (size_t i = 0; i < VEC_BYTES / 8; i++) ramp[i] = (int64_t)i * step;
    return (vec_t)ramp;
}
#define DEFINE_FROM_INT64(L)                                                              \
    INLINE vec_t vec_from_int64_i##L(const int64_t *from) {                                   \
        int##L##_t lanes[VEC_BYTES * 8 / L];                                          \
        for (size_t i = 0; i < VEC_BYTES * 8 / L; i++) lanes[i] = (int##L##_t)from[i]; \
        return vec_load(lanes);                                                       \
    }
DEFINE_FROM_INT64(16) DEFINE_FROM_INT64(32) DEFINE_FROM_INT64(64)
#define vec_from_int64(from, p) BY_KEY(vec_from_int64, p)(from)

#endif
