/* Vectors of 16 bytes, made of the vector extensions alone: for processors without a header here.
 *
 * The order is vector.h's. To add an instruction set, copy this file and replace what is slow. */
#ifndef FASTPOOL_GENERIC_H
#define FASTPOOL_GENERIC_H

#define VEC_BYTES 16
#define VEC_MASKS 0
#include "portable.h"

/* ---- load and store in part ---- */

DEFINE_PARTS()
DEFINE_MASKED_BY_BYTES

/* ---- maximum ---- */

MAX_BY_COMPARE(f32)
MAX_BY_COMPARE(f64)
MAX_BY_COMPARE(i8)
MAX_BY_COMPARE(u8)
MAX_BY_COMPARE(i16)
MAX_BY_COMPARE(u16)
MAX_BY_COMPARE(i32)
MAX_BY_COMPARE(u32)
MAX_BY_COMPARE(i64)
MAX_BY_COMPARE(u64)
MIN_BY_COMPARE(f32)
MIN_BY_COMPARE(f64)
MIN_BY_COMPARE(u8)
MIN_BY_COMPARE(u16)
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

#endif
