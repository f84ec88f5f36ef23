/* NEON: vectors of 16 bytes on aarch64. The order is vector.h's. */
#ifndef FASTPOOL_NEON_H
#define FASTPOOL_NEON_H

#include <arm_neon.h>

#define VEC_BYTES 16
#define VEC_MASKS 0
#include "portable.h"

/* ---- load and store in part ---- */

DEFINE_PARTS()
DEFINE_MASKED_BY_BYTES

/* ---- maximum ---- */

MAX_BY_INTRINSIC(f32, float32x4_t, vmaxq_f32)
MAX_BY_INTRINSIC(f64, float64x2_t, vmaxq_f64)
MAX_BY_INTRINSIC(i8, int8x16_t, vmaxq_s8)
MAX_BY_INTRINSIC(u8, uint8x16_t, vmaxq_u8)
MAX_BY_INTRINSIC(i16, int16x8_t, vmaxq_s16)
MAX_BY_INTRINSIC(u16, uint16x8_t, vmaxq_u16)
MAX_BY_INTRINSIC(i32, int32x4_t, vmaxq_s32)
MAX_BY_INTRINSIC(u32, uint32x4_t, vmaxq_u32)
MAX_BY_COMPARE(i64)
MAX_BY_COMPARE(u64)
MAX_BY_INTRINSIC(min_f32, float32x4_t, vminq_f32)
MAX_BY_INTRINSIC(min_f64, float64x2_t, vminq_f64)
MAX_BY_INTRINSIC(min_u8, uint8x16_t, vminq_u8)
MAX_BY_INTRINSIC(min_u16, uint16x8_t, vminq_u16)
#define narrow_max vec_max

/* ---- even and odd elements, and one element on ---- */

EVEN_BY_SHUFFLE(1, vec_u8, EVEN_16(0))
EVEN_BY_SHUFFLE(2, vec_u16, EVEN_8(0))
EVEN_BY_SHUFFLE(4, vec_u32, EVEN_4(0))
EVEN_BY_SHUFFLE(8, vec_u64, EVEN_2(0))
ODD_BY_SHUFFLE(4, vec_u32, ODD_4(0))
ODD_BY_SHUFFLE(8, vec_u64, ODD_2(0))
SHIFT_IN_BY(SHIFT_IN_BY_SHUFFLE)
#define vec_shift(a, b, n) SHIFT_OF_16(a, b, n, SHIFT_IN_BY_SHUFFLE)

/* ---- comparison and selection ---- */

DEFINE_GT_BY_COMPARE
DEFINE_SELECT_BY_BITS

/* ---- the NaN flag ---- */

DEFINE_FLAG_AS_VECTOR
DEFINE_NAN_IN_BY_COMPARE

/* ---- positions as 64-bit integers ---- */

DEFINE_WIDEN_BY_SHUFFLE

/* ---- elements as keys and back: gcc's __builtin_convertvector goes element by element ---- */

#if !defined(__clang__)
INLINE vec_t vec_wider(vec_t v, size_t bytes, int is_signed) {
    if (bytes == 1)
        return is_signed ? (vec_t)vmovl_s8(vget_low_s8((int8x16_t)v))
                         : (vec_t)vmovl_u8(vget_low_u8((uint8x16_t)v));
    if (bytes == 2)
        return is_signed ? (vec_t)vmovl_s16(vget_low_s16((int16x8_t)v))
                         : (vec_t)vmovl_u16(vget_low_u16((uint16x8_t)v));
    return is_signed ? (vec_t)vmovl_s32(vget_low_s32((int32x4_t)v))
                     : (vec_t)vmovl_u32(vget_low_u32((uint32x4_t)v));
}
INLINE vec_t vec_narrower(vec_t v, size_t bytes) {
    return bytes == 8   ? vec_concat_even_4(v, v)
           : bytes == 4 ? vec_concat_even_2(v, v)
                        : vec_concat_even_1(v, v);
}
#define KEYS_OF(stored, T, keys) ({                                                               \
    __typeof__(stored) stored_ = (stored);                                                        \
    vec_t wide_ = {0};                                                                            \
    memcpy(&wide_, &stored_, sizeof stored_);                                                     \
    for (size_t b_ = sizeof(T); b_ < sizeof((keys){0}[0]); b_ *= 2)                               \
        wide_ = vec_wider(wide_, b_, (T)-1 < 0);                                                  \
    wide_; })
#define STORED_OF(key, T, stored) ({                                                              \
    vec_t narrow_ = (vec_t)(key);                                                                 \
    stored stored_;                                                                               \
    for (size_t b_ = sizeof((key)[0]); b_ > sizeof(T); b_ /= 2)                                   \
        narrow_ = vec_narrower(narrow_, b_);                                                      \
    memcpy(&stored_, &narrow_, sizeof stored_);                                                   \
    stored_; })
#endif

#endif
