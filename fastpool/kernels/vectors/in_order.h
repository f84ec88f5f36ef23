/* Sums with a rounding after each addition: in float, and of doubles in double. */
#ifndef FASTPOOL_IN_ORDER_H
#define FASTPOOL_IN_ORDER_H

#include "loops.h"
#include "quotients.h"

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

#endif
