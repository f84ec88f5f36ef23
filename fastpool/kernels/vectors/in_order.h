/* Sums with a rounding after each addition: in float, and of doubles in double. */
#ifndef FASTPOOL_IN_ORDER_H
#define FASTPOOL_IN_ORDER_H

#include "pairwise.h"

/* Taps of n elements of some outputs, `step` elements from one output to the next. */
typedef struct {
    const void *taps;
    ptrdiff_t n, outputs, step, to_step;
    int begins; /* with 0, not the sums there are */
} taps_t;

/* Four sums at a time wait for their additions. (Two rows of outputs that share loads take as long:
 * additions take the time.) */
#define DEFINE_ADD_TAPS(name, T)                                                                  \
    static NOINLINE void add_taps_##name(T *sums, const taps_t *a, int count) {                   \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T), n = a->n;                       \
        /* The last vector overlaps the one before, unless there are sums: others are parts. */   \
        const ptrdiff_t full = a->begins && n > lanes ? n : n / lanes * lanes;                    \
        const T *const *taps = (const T *const *)a->taps;                                         \
        ptrdiff_t o = 0, i = 0;                                                                   \
        for (ptrdiff_t left = a->outputs * ((full + lanes - 1) / lanes); left > 0; left -= 4) {   \
            ptrdiff_t to[4], from[4];                                                             \
            vec_##name v[4];                                                                      \
            for (int j = 0; j < 4; j++) { /* (the last ones may be the same) */                   \
                to[j] = o * a->to_step + i, from[j] = o * a->step + i;                            \
                v[j] = a->begins ? (vec_##name){0} : (vec_##name)vec_load(sums + to[j]);          \
                if (j + 1 >= left) continue;                                                      \
                i += lanes;                                                                       \
                if (i >= full)                                                                    \
                    i = 0, o++;                                                                   \
                else if (i > n - lanes)                                                           \
                    i = n - lanes;                                                                \
            }                                                                                     \
            for (int t = 0; t < count; t++)                                                       \
                for (int j = 0; j < 4; j++) v[j] += (vec_##name)vec_load(taps[t] + from[j]);      \
            for (int j = 0; j < 4; j++) vec_store(sums + to[j], (vec_t)v[j]);                     \
        }                                                                                         \
        for (o = 0; full < n && o < a->outputs; o++) {                                            \
            T *to = sums + o * a->to_step + full;                                                 \
            vec_##name v = {0};                                                                   \
            if (!a->begins) v = load_first_##name(to, n - full);                                  \
            for (int t = 0; t < count; t++)                                                       \
                v += load_first_##name(taps[t] + o * a->step + full, n - full);                   \
            store_first_##name(to, v, n - full);                                                  \
        }                                                                                         \
    }                                                                                             \
    /* Copy rows of n elements, with margins of 0: `span` elements in all. At a stride of 2 they  \
     * become two parts. */                                                                       \
    static NOINLINE void copy_lines_##name(T *to, ptrdiff_t pitch, ptrdiff_t part, const T *p,    \
                                           ptrdiff_t step, ptrdiff_t rows, ptrdiff_t left,        \
                                           ptrdiff_t n, ptrdiff_t span, int stride) {             \
        const ptrdiff_t lanes = VEC_BYTES / (ptrdiff_t)sizeof(T);                                 \
        for (; rows > 0; rows--, to += pitch, p += step)                                          \
            for (ptrdiff_t i = 0; i < span; i += stride * lanes) {                                \
                const vec_t v = (vec_t)load_within_##name(p, i - left, n);                        \
                if (stride == 1) {                                                                \
                    vec_store(to + i, v);                                                         \
                    continue;                                                                     \
                }                                                                                 \
                const vec_t next = (vec_t)load_within_##name(p, i + lanes - left, n);             \
                vec_store(to + i / 2, vec_concat_even(v, next, p));                               \
                vec_store(to + i / 2 + part, vec_concat_odd(v, next, p));                         \
            }                                                                                     \
    }
DEFINE_ADD_TAPS(f32, float)
DEFINE_ADD_TAPS(f64, double)
#define add_taps(sums, a, count) BY_SUM(add_taps, sums)(sums, a, count)
#define copy_lines(to, pitch, part, p, step, rows, left, n, span, stride)                         \
    BY_SUM(copy_lines, to)(to, pitch, part, p, step, rows, left, n, span, stride)

/* Put every `stride`-th pixel of a row of n next to one another, in `parts` parts. 16 bytes are
 * moved at a time, for which there is room. */
static void split_pixels(char *to, ptrdiff_t pitch, const char *row, ptrdiff_t bytes, ptrdiff_t n,
                         ptrdiff_t stride, ptrdiff_t parts) {
    for (ptrdiff_t p = 0; p < parts; p++, to += pitch) {
        char *at = to; /* (what is moved beyond a pixel is written over by the next one) */
        for (ptrdiff_t c = p; c < n; c += stride, at += bytes)
            for (ptrdiff_t i = 0; i < bytes; i += 16) memcpy(at + i, row + c * bytes + i, 16);
    }
}

/* Round n quotients to half types. */
#if VEC_BYTES == 64
#define HALVES_F16(v) (halves_16)_mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_NEAREST_INT)
#elif VEC_BYTES == 32
#define HALVES_F16(v) (halves_8)_mm256_cvtps_ph((__m256)(v), _MM_FROUND_TO_NEAREST_INT)
#endif
INLINE vec_u32 rounded_bf16(vec_f32 v) { /* (a NaN stays one, whatever its bits) */
    vec_u32 bits = (vec_u32)v, nan = (vec_u32)(v != v);
    return (((bits + 0x7fff + (bits >> 16 & 1)) >> 16) & ~nan) | (nan & 0x7fc0);
}
#define HALVES_BF16(v) LOW_16_f32(rounded_bf16(v))
#define DEFINE_STORE_HALVES(name, T, HALVES)                                                      \
    static void store_##name(T *y, const float *q, ptrdiff_t n) {                                 \
        const ptrdiff_t lanes = VEC_BYTES / 4;                                                    \
        ptrdiff_t i = 0;                                                                          \
        while (n >= lanes && i < n) { /* (the last vector overlaps the one before) */             \
            i = i + lanes < n ? i : n - lanes;                                                    \
            __typeof__(HALVES((vec_f32){0})) halves = HALVES((vec_f32)vec_load(q + i));           \
            memcpy(y + i, &halves, sizeof halves);                                                \
            i += lanes;                                                                           \
        }                                                                                         \
        for (; i < n; i++) y[i] = (T){name##_bits(q[i])};                                         \
    }
DEFINE_STORE_HALVES(bf16, bfloat16_t_, HALVES_BF16)
#ifdef HALVES_F16
DEFINE_STORE_HALVES(f16, float16_t_, HALVES_F16)
#else
static void store_f16(float16_t_ *y, const float *q, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) y[i].bits = f16_bits(q[i]);
}
#endif

#endif
