/* Sums with a rounding after each addition: in float, and of doubles in double. */
#ifndef FASTPOOL_IN_ORDER_H
#define FASTPOOL_IN_ORDER_H

#include "loops.h"
#include "quick_quotients.h"

/* Add n elements to n sums. If there are `nans`, they count NaN, which are not added. */
#define DEFINE_ADD_IN_ORDER(name, T, sum_t)                                                       \
    static VECTORISED void add_run_##name(sum_t *sums, const T *p, ptrdiff_t n) {                 \
        for (ptrdiff_t i = 0; i < n; i++) sums[i] += (sum_t)as_double_##name(p[i]);               \
    }                                                                                             \
    static void add_in_order_##name(void *to, const T *p, ptrdiff_t n, ptrdiff_t stride,          \
                                    double *nans) {                                               \
        sum_t *sums = (sum_t *)to;                                                                \
        if (stride == 1 && !nans) {                                                               \
            add_run_##name(sums, p, n);                                                           \
            return;                                                                               \
        }                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            sum_t x = (sum_t)as_double_##name(p[i * stride]);                                     \
            if (nans && x != x)                                                                   \
                nans[i] += 1;                                                                     \
            else                                                                                  \
                sums[i] += x;                                                                     \
        }                                                                                         \
    }
DEFINE_ADD_IN_ORDER(f16, float16_t_, float) DEFINE_ADD_IN_ORDER(bf16, bfloat16_t_, float)
DEFINE_ADD_IN_ORDER(f32, float, float) DEFINE_ADD_IN_ORDER(f64, double, double)
#define BY_REAL(f, p)                                                                             \
    _Generic(*(p), float: f##_f32, double: f##_f64, float16_t_: f##_f16, bfloat16_t_: f##_bf16)
#define add_in_order(to, p, n, stride, nans) BY_REAL(add_in_order, p)(to, p, n, stride, nans)

/* Divide n sums, rounded to the type of the sums and then to the result's. */
#define DEFINE_DIVIDE_IN_ORDER(sum_t, name, T, STORED)                                            \
    static VECTORISED void divide_##sum_t##_##name(T *y, const sum_t *sums,                       \
                                                   const divisors_t *d, ptrdiff_t n) {            \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            sum_t by = (sum_t)divisor_at(d, i), q = by == 0 ? 0 : sums[i] / by;                   \
            y[i] = STORED(q);                                                                     \
        }                                                                                         \
    }
#define STORED_AS_IT_IS(q) q
#define STORED_AS_F16(q) ((float16_t_){f16_bits(q)})
#define STORED_AS_BF16(q) ((bfloat16_t_){bf16_bits(q)})
DEFINE_DIVIDE_IN_ORDER(float, f32, float, STORED_AS_IT_IS)
DEFINE_DIVIDE_IN_ORDER(float, f64, double, STORED_AS_IT_IS)
DEFINE_DIVIDE_IN_ORDER(float, f16, float16_t_, STORED_AS_F16)
DEFINE_DIVIDE_IN_ORDER(float, bf16, bfloat16_t_, STORED_AS_BF16)
DEFINE_DIVIDE_IN_ORDER(double, f64, double, STORED_AS_IT_IS)

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
