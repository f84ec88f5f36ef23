/* The vectors of one build. Choose the header of the instruction set, and complete what it defines.
 *
 * The header of an instruction set defines these operations, in this order. A vec_t has no element
 * type. A suffix names the element (f32, f64, i8, u8, ..., u64) or its bytes (1, 2, 4, 8).
 *
 *   VEC_BYTES, VEC_MASKS             bytes of a vector; is a masked load as fast as a load?
 *   #include "portable.h"            types, vec_load, vec_store, byte_mask, narrow_t
 *   vec_load_part, vec_store_part    the first n bytes, n < VEC_BYTES; no other byte is touched
 *   vec_masked_load_or               the bytes that a mask names; the others come from a vector and
 *                                    are not read from memory
 *   vec_compress_store               store the elements that a mask names, one after the other, and
 *                                    return how many; with `room`, up to a vector may be written
 *   vec_max_TYPE, narrow_max_TYPE    the maximum; of floats, defined if neither is a NaN; of
 *                                    min_TYPE the minimum of TYPE
 *   vec_concat_even_BYTES            the elements at even places of two vectors in a row
 *   vec_concat_odd_4, _8             the elements at odd places
 *   vec_shift_in_BYTES               all of the first vector but its first element, then the first
 *                                    element of the second
 *   vec_shift                        the bytes from n on of two vectors in a row; n is a constant,
 *                                    a multiple of 4, at most VEC_BYTES
 *   vec_mask, vec_gt_TYPE            comparison, of i16, i32, i64, f32, f64
 *   vec_select_TYPE                  the first where the mask is set, else the second: i16 to i64
 *   vec_flag, flag_none, flag_any, flag_or, nan_in_f32, nan_in_f64
 *                                    was there a NaN? nan_in looks at two vectors
 *   vec_widen_i16, _i32              unsigned positions as vectors of 64-bit integers
 *   KEYS_OF, STORED_OF               optional, for keys.h: convert elements to keys and back
 *
 * To add an instruction set (SVE, say) write one such header and choose it below. Add a line to
 * fastpool/_running/instruction_sets.py and its features to cpu.h. setup.py has to build more than
 * the baseline on that architecture, with the compiler's flags for it.
 *
 * Operations that need an element type take a pointer as their last argument, the tag, and look
 * only at what it points to: vec_max(a, b, (float *)p). So one fused function in Cython serves
 * every dtype.
 */
#ifndef FASTPOOL_VECTOR_H
#define FASTPOOL_VECTOR_H

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "avx512.h"
#elif defined(__AVX2__)
#include "avx2.h"
#elif defined(__SSE2__)
#include "sse2.h"
#elif defined(__aarch64__)
#include "neon.h"
#else
#include "generic.h"
#endif

/* ---- the operation of an element type ---- */

#define vec_max(a, b, tag) BY_TYPE(vec_max, tag)(a, b)
#if VEC_BYTES > 16
#define narrow_max(a, b, tag) BY_TYPE(narrow_max, tag)(a, b)
#endif
#define vec_concat_even(lo, hi, tag) BY_SIZE(vec_concat_even, tag, lo, hi)
INLINE vec_t vec_concat_odd_1(vec_t lo, vec_t hi) {
    return vec_concat_even_1((vec_t)TO_FIRST_HALF((vec_u16)lo, 8),
                             (vec_t)TO_FIRST_HALF((vec_u16)hi, 8));
}
INLINE vec_t vec_concat_odd_2(vec_t lo, vec_t hi) {
    return vec_concat_even_2((vec_t)TO_FIRST_HALF((vec_u32)lo, 16),
                             (vec_t)TO_FIRST_HALF((vec_u32)hi, 16));
}
#define vec_concat_odd(lo, hi, tag) BY_SIZE(vec_concat_odd, tag, lo, hi)
#define vec_shift_in(a, b, tag) BY_SIZE(vec_shift_in, tag, a, b)
#define vec_gt(a, b, tag)                                                                         \
    _Generic(*(tag), int16_t: vec_gt_i16, int32_t: vec_gt_i32, int64_t: vec_gt_i64,               \
             float: vec_gt_f32, double: vec_gt_f64)(a, b)
#define vec_select(m, a, b, tag) BY_KEY(vec_select, tag)(m, a, b)

/* ---- track NaN: `seen`, or is there a NaN in a or b; two vectors cost one comparison ---- */

INLINE vec_flag nan_or_f32(vec_flag seen, vec_t a, vec_t b) {
    return flag_or(seen, nan_in_f32(a, b));
}
INLINE vec_flag nan_or_f64(vec_flag seen, vec_t a, vec_t b) {
    return flag_or(seen, nan_in_f64(a, b));
}
#define NO_NAN(type)                                                                              \
    INLINE vec_flag nan_or_##type(vec_flag seen, vec_t a, vec_t b) {                              \
        (void)a, (void)b;                                                                         \
        return seen;                                                                              \
    }
NO_NAN(i8) NO_NAN(u8) NO_NAN(i16) NO_NAN(u16) NO_NAN(i32) NO_NAN(u32) NO_NAN(i64) NO_NAN(u64)
NO_NAN(min_u8) NO_NAN(min_u16)
#define nan_or_min_f32 nan_or_f32
#define nan_or_min_f64 nan_or_f64
#define nan_or(seen, a, b, tag) BY_TYPE(nan_or, tag)(seen, a, b)

/* ---- integers as wide as an element: positions ---- */

/* (unsigned: a sum wraps around) */
INLINE vec_t vec_add_i16(vec_t a, vec_t b) { return (vec_t)((vec_u16)a + (vec_u16)b); }
INLINE vec_t vec_add_i32(vec_t a, vec_t b) { return (vec_t)((vec_u32)a + (vec_u32)b); }
INLINE vec_t vec_add_i64(vec_t a, vec_t b) { return (vec_t)((vec_u64)a + (vec_u64)b); }
#define vec_add_int(a, b, tag) BY_KEY(vec_add, tag)(a, b)
#define vec_max_int(a, b, tag) BY_KEY(vec_max, tag)(a, b)

INLINE vec_t vec_set_i16(int64_t x) { return (vec_t)((vec_u16){0} + (uint16_t)x); }
INLINE vec_t vec_set_i32(int64_t x) { return (vec_t)((vec_u32){0} + (uint32_t)x); }
INLINE vec_t vec_set_i64(int64_t x) { return (vec_t)((vec_u64){0} + (uint64_t)x); }
#define vec_set_int(x, tag) BY_KEY(vec_set, tag)(x)

/* 0, step, 2 * step, ... as 64-bit integers. */
INLINE vec_t vec_iota(int64_t step) {
    vec_i64 iota = {0};
    for (size_t i = 0; i < VEC_BYTES / 8; i++) iota[i] = (int64_t)i * step;
    return (vec_t)iota;
}

#define DEFINE_FROM_INT64(L)                                                                      \
    INLINE vec_t vec_from_int64_i##L(const int64_t *from) {                                       \
        int##L##_t lanes[VEC_BYTES * 8 / L];                                                      \
        for (size_t i = 0; i < VEC_BYTES * 8 / L; i++) lanes[i] = (int##L##_t)from[i];            \
        return vec_load(lanes);                                                                   \
    }
DEFINE_FROM_INT64(16) DEFINE_FROM_INT64(32) DEFINE_FROM_INT64(64)
#define vec_from_int64(from, tag) BY_KEY(vec_from_int64, tag)(from)

/* ---- the identity element of the maximum: what margins hold ---- */

INLINE float lowest_f32(void) { return -INFINITY; }
INLINE double lowest_f64(void) { return -INFINITY; }
INLINE int8_t lowest_i8(void) { return INT8_MIN; }
INLINE uint8_t lowest_u8(void) { return 0; }
INLINE int16_t lowest_i16(void) { return INT16_MIN; }
INLINE uint16_t lowest_u16(void) { return 0; }
INLINE int32_t lowest_i32(void) { return INT32_MIN; }
INLINE uint32_t lowest_u32(void) { return 0; }
INLINE int64_t lowest_i64(void) { return INT64_MIN; }
INLINE uint64_t lowest_u64(void) { return 0; }
INLINE float lowest_min_f32(void) { return INFINITY; }
INLINE double lowest_min_f64(void) { return INFINITY; }
INLINE uint8_t lowest_min_u8(void) { return UINT8_MAX; }
INLINE uint16_t lowest_min_u16(void) { return UINT16_MAX; }
#define lowest(tag) BY_TYPE(lowest, tag)()

#define DEFINE_VEC_LOWEST(tag, type)                                                              \
    INLINE vec_t vec_lowest_##tag(void) { return (vec_t)((vec_##type){0} + lowest_##tag()); }
DEFINE_VEC_LOWEST(f32, f32) DEFINE_VEC_LOWEST(min_f32, f32)
DEFINE_VEC_LOWEST(f64, f64) DEFINE_VEC_LOWEST(min_f64, f64)
DEFINE_VEC_LOWEST(i8, i8)
DEFINE_VEC_LOWEST(u8, u8) DEFINE_VEC_LOWEST(min_u8, u8)
DEFINE_VEC_LOWEST(i16, i16)
DEFINE_VEC_LOWEST(u16, u16) DEFINE_VEC_LOWEST(min_u16, u16)
DEFINE_VEC_LOWEST(i32, i32) DEFINE_VEC_LOWEST(u32, u32)
DEFINE_VEC_LOWEST(i64, i64) DEFINE_VEC_LOWEST(u64, u64)
#define vec_lowest(tag) BY_TYPE(vec_lowest, tag)()

/* ---- the maximum of a vector's elements, as the first element of a narrow vector ---- */

#define vec_reduce_max(v, tag) ({                                                                 \
    narrow_t parts_[VEC_BYTES / 16], best_;                                                       \
    vec_t v_ = (v);                                                                               \
    memcpy(parts_, &v_, VEC_BYTES);                                                               \
    best_ = parts_[0];                                                                            \
    for (int i_ = 1; i_ < VEC_BYTES / 16; i_++) best_ = narrow_max(best_, parts_[i_], tag);       \
    best_ = narrow_max(best_, ((narrow_t){best_[1], best_[1]}), tag);                             \
    if (sizeof(*(tag)) <= 4) best_ = narrow_max(best_, TO_FIRST_HALF(best_, 32), tag);            \
    if (sizeof(*(tag)) <= 2) best_ = narrow_max(best_, TO_FIRST_HALF(best_, 16), tag);            \
    if (sizeof(*(tag)) == 1) best_ = narrow_max(best_, TO_FIRST_HALF(best_, 8), tag);             \
    best_; })

#endif
