# Declare to Cython what the headers of this folder define.
#
# vector.h lists the operations on vectors. Every instruction set defines all of them.

cdef extern from "kernels/vectors/vector.h" nogil:
    ctypedef struct vec_t:
        pass
    ctypedef struct vec_mask:
        pass
    const Py_ssize_t VEC_BYTES
    vec_t vec_load(const void *)
    vec_t vec_load_part(const void *, size_t)
    ctypedef uint64_t byte_mask
    const bint VEC_MASKS
    byte_mask vec_mask_range(Py_ssize_t, Py_ssize_t)
    vec_t vec_masked_load_or(const void *, byte_mask, vec_t)
    Py_ssize_t vec_compress_store(void *, vec_t, byte_mask, size_t, bint)
    void vec_store(void *, vec_t)
    void vec_store_part(void *, vec_t, size_t)
    ctypedef struct narrow_t:
        pass
    ctypedef struct min_f32_t:
        pass
    ctypedef struct min_f64_t:
        pass
    ctypedef struct min_u8_t:
        pass
    ctypedef struct min_u16_t:
        pass
    narrow_t narrow_load(const void *, size_t)
    void narrow_store(void *, narrow_t, size_t)
    narrow_t narrow_max(narrow_t, narrow_t, ...)
    # The last argument only gives the element type.
    vec_t vec_max(vec_t, vec_t, ...)
    vec_t vec_concat_even(vec_t, vec_t, ...)
    vec_t vec_concat_odd(vec_t, vec_t, ...)
    vec_t vec_shift_in(vec_t, vec_t, ...)
    vec_t vec_lowest(...)
    narrow_t vec_reduce_max(vec_t, ...)
    ctypedef struct vec_flag:
        pass
    vec_flag flag_none()
    bint flag_any(vec_flag)
    vec_flag flag_or(vec_flag, vec_flag)
    vec_flag nan_or(vec_flag, vec_t, vec_t, ...)
    vec_mask vec_gt(vec_t, vec_t, ...)
    vec_t vec_select(vec_mask, vec_t, vec_t, ...)
    vec_t vec_add_int(vec_t, vec_t, ...)
    vec_t vec_set_int(int64_t, ...)
    double lowest(...)
    vec_t vec_iota(int64_t)
    vec_t vec_from_int64(const int64_t *, ...)
    vec_t vec_max_int(vec_t, vec_t, ...)

cdef extern from "kernels/vectors/keys.h" nogil:
    int F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, BOOL
    int NAN_IGNORE, ZEROS_EQUAL, MINIMUM
    const unsigned char *dtype_bytes
    ctypedef void (*keys_load_t)(void *, size_t, const void *, size_t, size_t, size_t, int) noexcept
    ctypedef keys_load_t keys_store_t
    keys_load_t keys_loader(int, int)
    keys_store_t keys_storer(int, int)
    bint has_margin(...)

cdef extern from "kernels/vectors/indices.h" nogil:
    void store_indices(...)
    void store_vec_indices(...)

cdef extern from "kernels/vectors/loops.h" nogil:
    void fill(...)
    void fill_lowest(...)
    void prefetch_bytes(const char *, Py_ssize_t)
    void copy_column(char *, Py_ssize_t, const char *, Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept
    void fill_positions(...)
    void store_bools(uint8_t *, Py_ssize_t)
    int64_t greatest(...)
    Py_ssize_t first_equal(...)
    void max_pairs_of(int64_t *, int64_t *, const int64_t *, const int64_t *, const int64_t *,
                      const int64_t *, Py_ssize_t)
    ctypedef struct places_t:
        uint64_t of[256]
    ctypedef struct indices_t:
        const char *data
        int bytes
    uint64_t index_at(const indices_t *, Py_ssize_t)
    bint plane_outside(const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t, uint64_t)
    bint pixel_outside(const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t, uint64_t, uint64_t)
    bint table_outside(const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t, const uint64_t *,
                       uint64_t)
    void plane_range(const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t, Py_ssize_t *,
                     Py_ssize_t *)
    void pixel_range(const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t, uint64_t, Py_ssize_t *,
                     Py_ssize_t *)
    void table_range(const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t, const uint64_t *,
                     Py_ssize_t *, Py_ssize_t *)
    bint plane_places(uint64_t *, const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t, uint64_t,
                      Py_ssize_t *)
    bint pixel_places(uint64_t *, const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t, uint64_t,
                      uint64_t, Py_ssize_t *)
    bint table_places(uint64_t *, const indices_t *, Py_ssize_t, Py_ssize_t, uint64_t,
                      const uint64_t *, uint64_t, Py_ssize_t *)
    void scatter(...)
    void scatter_by(...)

cdef extern from "kernels/vectors/composites.h" nogil:
    ctypedef struct decoding_t:
        float per_col, per_row
        uint32_t col, row, slab
    ctypedef struct places_of_t:
        const void *steps
        Py_ssize_t first, row_places
    ctypedef void (*compose_t)(void *, const void *, Py_ssize_t, size_t, size_t, int,
                               const places_of_t *) noexcept
    compose_t composer(int, int)
    void keys_of(...)
    void indices_of(void *, ...)

cdef extern from "kernels/vectors/wide.h" nogil:
    ctypedef struct float16_t_:
        pass
    ctypedef struct bfloat16_t_:
        pass
    ctypedef struct bool_t_:
        pass

cdef extern from "kernels/vectors/float_flags.h" nogil:
    ctypedef struct fp_state:
        pass
    void fp_detect_flags()
    bint fp_sets_flags
    void fp_enter(fp_state *)
    void fp_leave(const fp_state *)
    void fp_enter_comparing(fp_state *)
    void fp_leave_comparing(const fp_state *)
    void fp_clear()
    bint fp_inexact()
    bint fp_underflow()
    bint fp_unsure()

cdef extern from "kernels/vectors/quotients.h" nogil:
    enum: HALF_EVEN, HALF_AWAY, TRUNC, FLOOR
    ctypedef struct sums_t:
        const double *high
        const double *low
        const double *rest
        double bound
        bint *unsure
    ctypedef struct divisors_t:
        const double *counts
        const double *reciprocals
        double divisor, reciprocal
        bint powers_of_two
        int rounding
    double power_of_two(int)
    int exponent_of(double)
    bint all_within(const double *, Py_ssize_t, double)
    void divide_f16(float16_t_ *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_bf16(bfloat16_t_ *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_f32(float *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_f64(double *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_i8(int8_t *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_u8(uint8_t *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_i16(int16_t *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_u16(uint16_t *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_i32(int32_t *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_u32(uint32_t *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_i64(int64_t *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_u64(uint64_t *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_bool(bool_t_ *, const sums_t *, const divisors_t *, Py_ssize_t)
    void divide_words(void *, const double **, int, const divisors_t *, Py_ssize_t, bint, int)

cdef extern from "kernels/vectors/quick_quotients.h" nogil:
    const bint HAS_FMA
    ctypedef struct quick_t:
        const char *sums
        Py_ssize_t sums_pitch, pitch, rows, n
        const void *high
        const void *low
        bint one
        int rounding
    bint split_reciprocal(double, int, int, double *, double *)
    bint quick_divide_f32(void *, const quick_t *)
    bint quick_divide_f16(void *, const quick_t *)
    bint quick_divide_bf16(void *, const quick_t *)
    bint quick_divide_8(void *, const quick_t *)
    bint quick_divide_16(void *, const quick_t *)
    bint quick_divide_32(void *, const quick_t *)
    bint quick_divide_8_of_floats(void *, const quick_t *)
    bint quick_divide_16_of_floats(void *, const quick_t *)

cdef extern from "kernels/vectors/quantize.h" nogil:
    const double MOST_SURE
    ctypedef struct quantization_t:
        int64_t p, q
        int shift
        double step, x_zero, y_zero, least, most
    ctypedef struct quantize_t:
        const quantization_t *to
        const char *sums
        Py_ssize_t sums_pitch, pitch, rows, n
        const double *by
        const double *zeros
        const double *high
        const double *low
        const float *zeros_f
        const float *high_f
        const float *low_f
        bint one, of_floats, sure
        int in_floats
    const double MOST_SURE_FLOATS, MOST_FLOAT_TOTAL
    void split_factor(const quantization_t *, double, double *, double *)
    void split_factor_floats(double, double, double, float *, float *)
    void quantize_rows(void *, const quantize_t *)

cdef extern from "kernels/vectors/transpose.h" nogil:
    void transpose(void *, Py_ssize_t, const void *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int)

cdef extern from "kernels/vectors/convert.h" nogil:
    ctypedef void (*convert_t)(void *, const void *, Py_ssize_t, int) noexcept
    convert_t to_floats_of(int)
    convert_t to_doubles_of(int)
    convert_t to_words_of(int)
    int64_t sum_of_bytes(const char *, Py_ssize_t, bint)
    int64_t sum_of_rows_of_bytes(const char *, Py_ssize_t, Py_ssize_t, Py_ssize_t, bint)
    bint contains_nan(const char *, Py_ssize_t, int)

cdef extern from "kernels/vectors/digits.h" nogil:
    ctypedef struct part_t:
        double scale, above, unit
        bint quick, wild
        double left[1]                      # (one for each double of a vector)
    const double LEAST_SHRUNK
    double left_after(const part_t *)
    ctypedef struct range_t:
        double most[1]                      # (also)
        bint wild
    double largest(const double *)
    void take_parts(double *, const double *, Py_ssize_t, part_t *)
    void note(range_t *, const double *, Py_ssize_t)
    void add_to_sums(double *, double *, double *, const double *, double, Py_ssize_t)

cdef extern from "kernels/vectors/in_order.h" nogil:
    ctypedef struct taps_t:
        const void *taps
        Py_ssize_t n, outputs, step, to_step
        bint begins
    void add_taps(...)
    void copy_lines(...)
    void split_pixels(char *, Py_ssize_t, const char *, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                      Py_ssize_t)
    void store_f16(float16_t_ *, const float *, Py_ssize_t)
    void store_bf16(bfloat16_t_ *, const float *, Py_ssize_t)

cdef extern from "kernels/vectors/pairwise.h" nogil:
    enum: MOST_LEAF, NO_DIVISION, ONE_DIVISOR, DIVISORS_OF_COLUMNS
    ctypedef struct pairs_of_t:
        void *to
        Py_ssize_t pitch
        const void *taps[MOST_LEAF]
        int count
        Py_ssize_t step, last_step
        int stride
        Py_ssize_t rows, width
        bint has_room
        int division
        const void *by
        const void *high
        const void *low
    void add_in_pairs(...)
    bint set_pair_reciprocals(...)
    ctypedef void (*add_converted_t)(const pairs_of_t *) noexcept
    add_converted_t add_converted_of(int, bint)
    void add_to(...)
    void add_row_trees(...)
    bint take_nans(...)
    void leave_nans_out(double *, double *, double *, const double *, bint, Py_ssize_t)
    void divide_some(...)

cdef extern from "kernels/vectors/squares.h" nogil:
    ctypedef struct squares_t:
        void *to
        Py_ssize_t to_col
        const void *taps[MOST_LEAF]
        const void *zeros
        Py_ssize_t steps[MOST_LEAF]
        int rows, cols
        Py_ssize_t first, stride, size, n, outputs
        const void *by
        const void *high
        const void *low
        bint vary
        Py_ssize_t runs, step, to_row
    void pixels(...)
    bint slide_sums(...)
    void slide_pixels(...)
    void pixels_f64_of_f32(const squares_t *)

cdef extern from "kernels/vectors/byte_sums.h" nogil:
    enum: MOST_BYTE_ROWS, MOST_BYTE_TAPS
    ctypedef struct bytes_t:
        void *to
        const void *before
        const char *enter
        const char *leave
        Py_ssize_t entering, leaving, pitch, n
        int flip
    ctypedef struct along_t:
        const char *taps[2]
        Py_ssize_t count[2]
        Py_ssize_t step[2]
        Py_ssize_t rows, n, pitch, to_pitch
        int kept
        void *to
    ctypedef struct byte_divisors_t:
        double by
        bint fits
    void add_bytes(const bytes_t *, float *, int)
    void sums_along(const along_t *, int)
    void floats_along(const along_t *, int)
    void means_along(const along_t *, const byte_divisors_t *, int)
    void set_byte_divisors(byte_divisors_t *, char *, Py_ssize_t, double, const double *,
                           Py_ssize_t, Py_ssize_t, int, bint, int)

cdef extern from "kernels/vectors/folds.h" nogil:
    enum:
        MOST_FOLDED
    ctypedef struct folds_t:
        char *to
        const char *taps[MOST_FOLDED]
        int count, width, flip
        Py_ssize_t at, n, rows, step, pitch
    void set_shift(folds_t *, int, int)
    void fold(const folds_t *, int)

cdef extern from "kernels/vectors/cpu.h" nogil:
    int cpu_has(const char *)

cdef extern from "kernels/vectors/redzones.h" nogil:
    const Py_ssize_t REDZONE
    void poison_redzones(char *, size_t, const Py_ssize_t *, int)
    void unpoison_redzones(void *, size_t)

cdef extern from "kernels/vectors/threads.h" nogil:
    const bint HAS_OPENMP
    int openmp_limit()
    int threads_given(int)
    void threads_start(int)
    int call_in_child(void (*)() noexcept nogil)
    int64_t wall_ns()
    int64_t thread_ns()
    Py_ssize_t take_next(Py_ssize_t *)
    int add_relaxed(int *, int)
    int64_t load_relaxed(const int64_t *)
    void store_relaxed(int64_t *, int64_t)


ctypedef fused max_t:       # elements whose maxima are taken as they are
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


ctypedef fused number:      # and elements whose minima are taken as they are
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    min_f32_t
    min_f64_t
    min_u8_t
    min_u16_t


ctypedef fused any_key:     # keys as wide as elements, of values alone
    int8_t
    int16_t
    int32_t
    int64_t


ctypedef fused key_t:       # keys with positions of the same width
    int16_t
    int32_t
    int64_t


ctypedef fused ordered:     # element types that windows with indices compare as they are
    float
    double
    int16_t
    int32_t
    int64_t


ctypedef fused half_t:      # keys that are composed with their places
    int16_t
    int32_t


ctypedef fused index_t:
    int32_t
    int64_t


ctypedef fused bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
