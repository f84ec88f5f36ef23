# An average pooling: sums of windows, and what each is divided by.
#
# Sums are in double. Most of them are exact, whatever the order: float32 elements have 24 bits, so
# those of one window leave room for carries unless their exponents differ by much. The processor's
# flag for rounded results tells, at no cost, whether all additions of a block were exact. If they
# were not, the plane is pooled again: double_double.pxi, digits.pxi. So the order of additions
# never shows, and sums may be carried along: from one row of windows to the next, and by prefixes
# along a row.

cdef enum:
    MOST_PARTS = 256        # digits of an element, and marks
    MOST_WORDS = 4          # of an integer
    MARKS = 3               # what is counted besides digits: infinities and NaN
    INTERLEAVED = 16        # planes (averages.py says so too)
    MOST_DIVISORS = 16      # of rows, whose reciprocals are kept
    FACTOR_SLOTS = 4        # of rows that are quantised alike
    FACTOR_ARRAYS = 6       # of doubles, in each slot (quantize.pxi)
    MAX_INT_SLABS = 64      # under a window
    MOST_SPLIT = 8          # stride of columns that are split (pairwise.pxi)
    PAIR_SLOTS = 4          # rows of divisors that are kept there
    MOST_ODD_PART = 1 << 11     # of divisors of halves (ints.h)


cdef enum SumArea:          # areas of one thread's scratch, all of doubles but OFFSETS
    OFFSETS                 # of the slabs that leading taps select, also if interleaved or split
    PLACES                  # of each output column: its first element, and the one after the last
    COLUMNS                 # columns of a window added up, with margins of 0; maybe of each digit
    PREFIX                  # of COLUMNS: the sum of all before
    HIGH                    # sums of a block of output rows
    LOW                     # what HIGH is rounded by
    REST                    # what LOW is rounded by
    DIGITS                  # sums of one digit, of the words of integers, or of parts of trees
    TALL                    # rows of parts of trees that neighbours share
    LOWER_HIGH              # sums of what is below the digits of elements near overflow
    LOWER_LOW
    LOWER_REST
    UPPER                   # how many NaN and positive infinities a window has
    LOWER                   # how many NaN and negative infinities
    NANS                    # how many NaN
    DIVISORS                # of each output, if they are not products of counts
    RECIPROCALS
    ROWS                    # of the input, as floats or doubles (small_windows.pxi)
    ROW_PLACES              # where they are, and those that are read where they are
    NO_ROW                  # zeros
    ONE_ROW                 # a row before it is split
    FACTORS                 # of quantised means, of rows that are alike
    INT_COLUMNS             # columns of a window added up in 32 bits, with margins of 0
    INT_PREFIX              # of these: the sum of all before, or the sums of all places
    INT_ROWS                # elements as multiples of a unit
    ELEMENTS                # of interleaved planes
    RESULTS                 # of interleaved planes
    SPLIT                   # rows of doubles as two digits (two_digits.pxi)
    COLUMN_COUNTS           # of a tile, if they vary, and their reciprocals
    SUM_AREAS


cdef struct Counts:                     # of one axis: what each output's divisor is the product of
    bint vary                           # from one output to another
    double value                        # of all outputs, if they do not
    bint powers_of_two
    # A count is that of an output's taps between two places. The outputs from `first` to `last`
    # have all of their taps there. Of an irregular axis it is the length of the window.
    Py_ssize_t kernel, stride, dilation, begin      # taps
    Py_ssize_t low, high                            # places
    Py_ssize_t first, last                          # inner


cdef struct Reciprocals:                # of the divisors of a row of outputs, in two parts
    double by                           # what the divisors have in common
    Py_ssize_t count                    # of columns, or 1 if all are equal
    char *high                          # numbers of the type of sums, and 0 for a vector after them
    char *low
    char *nearest                       # of halves, if their sums are integers: floats
    char *minus                         # the divisors: floats


cdef struct Average:                    # an average pooling, ready to run
    Frame frame                         # (first: a Job points to it)
    # AVERAGE_FIELDS:
    Py_ssize_t ignore_nan, sequential
    Py_ssize_t rounds_once              # a sum of doubles is rounded as its mean is, if normal
    Py_ssize_t interleaves              # small planes (interleaved.pxi)
    Py_ssize_t carries_rows             # sums of columns go from one row of windows to the next
    Py_ssize_t carries_cols             # sums of windows are differences of prefixes
    Py_ssize_t block, block_rows        # outputs that are summed, and then divided
    Py_ssize_t band                     # doubles in COLUMNS, of one digit
    Py_ssize_t digit_bits, most_digits  # of elements whose sums a double does not hold
    Py_ssize_t int_taps                 # of a window
    Py_ssize_t int_bands                # rows of INT_COLUMNS
    Py_ssize_t int_rows                 # rows that INT_ROWS has room for, in every slab
    Py_ssize_t small_floats             # are sums floats? They are exact
    Py_ssize_t pitch                    # elements from one of these rows to the next
    Py_ssize_t zeros                    # of a row of padding
    Py_ssize_t split                    # doubles of a block as two digits, or 0
    Py_ssize_t pairwise, walks          # pairwise.pxi: are the columns of each output added alone?
    Py_ssize_t parts, lines             # elements of trees; rows that are converted at once
    Py_ssize_t tall                     # elements of parts that neighbours share (tall_windows.pxi)
    Py_ssize_t long_rows                # rows of sums whose columns are added at once
    Py_ssize_t wide_counts              # do only doubles hold the numbers of NaN?
    # The rest:
    int result                          # code of the result's dtype
    int rounding
    bint whole, pixels, small, bytes, ints      # a strategy; columns.pxi if none of these
    double terms                        # more than the additions of a window
    double divisor                      # of all windows, or 0
    double most_divisor                 # of any window
    double limit                        # for sums, if not 0: an integer, or finite
    Counts rows, cols
    Counts *lead
    Reciprocals reciprocals[MOST_DIVISORS]
    Py_ssize_t table_bytes              # of all reciprocals
    int divisors                        # for which there are reciprocals; 0 if not for all
    bint quick_ints                     # are there quick quotients of sums in 32 bits?


AVERAGE_FIELDS = (
    "ignore_nan", "sequential", "rounds_once", "interleaves", "carries_rows", "carries_cols",
    "block", "block_rows", "band", "digit_bits", "most_digits", "int_taps", "int_bands", "int_rows",
    "small_floats", "pitch", "zeros", "split", "pairwise", "walks", "parts", "lines",
    "tall", "long_rows", "wide_counts",
)


cdef struct Row:                        # sums of a row of windows
    sums_t sums
    const double *word[MOST_WORDS]      # of integers that `sums` does not hold: the lowest first
    int words
    double *divisors                    # of each sum, if they are not products of counts
    double *reciprocals


cdef struct Rows:                       # rows of the input under a window, from the tile's first
    Py_ssize_t first, count, step
    Py_ssize_t pitch                    # elements from one row of the input to the next


cdef struct Factors:                    # of the rows of a tile that are quantised alike
    Py_ssize_t taps[FACTOR_SLOTS]       # of a window, but for those along the row
    double divisors[FACTOR_SLOTS]       # of these windows, but for the counts along the row
    int count                           # of all that were ever set


cdef struct Block:                      # some rows of a tile's outputs, of one plane
    const Average *average
    const Tile *tile
    const View *x
    char *scratch
    const Py_ssize_t *offsets           # of slabs
    Py_ssize_t slabs
    const double *counts                # of the tile's columns; NULL if they do not vary
    const double *reciprocals           # 0 for a count of 0
    const quantization_t *quantization  # if results are quantised, else NULL
    Factors *factors


cdef struct Columns:                    # columns of a window added up
    double *sums                        # where the first element of the tile is
    Py_ssize_t first, stop, step        # rows of the input that are in there


ROUNDINGS = {"half_even": HALF_EVEN, "half_away": HALF_AWAY, "trunc": TRUNC, "floor": FLOOR}


cdef inline double *doubles(const Average *a, char *scratch, SumArea area) noexcept nogil:
    return <double *>frame_area(&a.frame, scratch, <int>area)


cdef int set_counts(Counts *c, counts) except -1:
    """Copy the counts of an axis: one double, or `counts.Counts`."""
    c.vary = not isinstance(counts, float)
    if not c.vary:
        c.value = counts
        c.powers_of_two = is_power_of_two(c.value)
        return 0
    read_integers(&c.kernel, counts.taps, 4)
    read_integers(&c.low, counts.places, 2)
    read_integers(&c.first, counts.inner, 2)
    c.powers_of_two = len(counts.values) > 0
    for value in counts.values:
        c.powers_of_two &= is_power_of_two(value)
    return 0


cdef double count_of(const Counts *c, const Window *w, Py_ssize_t output) noexcept nogil:
    """Return the count of an output of a window's axis."""
    cdef Py_ssize_t start, skipped = 0
    if not c.vary:
        return c.value
    if w.irregular:
        return <double>(window_stop(w, output) - window_start(w, output))
    if c.first <= output < c.last:
        return <double>c.kernel
    start = output * c.stride - c.begin
    if start >= c.high:
        return 0
    if start < c.low:
        skipped = ceil_div(c.low - start, c.dilation)
    return <double>imax(0, imin(c.kernel, ceil_div(c.high - start, c.dilation)) - skipped)


cdef void set_column_counts(Block *b) noexcept nogil:
    """Set the counts of a tile's columns, if the divisors of a row vary."""
    cdef const Average *a = b.average
    cdef const Window *w = &a.frame.problem.cols
    cdef Py_ssize_t cols = b.tile.cols, c
    cdef double *counts = doubles(a, b.scratch, COLUMN_COUNTS)
    cdef double *reciprocals = counts + cols
    cdef Py_ssize_t lo, hi
    cdef Walk walk
    b.counts = b.reciprocals = NULL
    if a.divisor or not a.cols.vary:
        return
    b.counts, b.reciprocals = counts, reciprocals
    if w.irregular:
        start_walk(&walk, w, b.tile.col)
        for c in range(cols):
            counts[c] = <double>(walk.stop - walk.start)
            next_window(&walk, w)
    else:
        lo = imin(cols, imax(0, a.cols.first - b.tile.col))
        hi = imin(cols, imax(lo, a.cols.last - b.tile.col))
        fill(counts + lo, hi - lo, <double>a.cols.kernel)
        for c in range(lo):
            counts[c] = count_of(&a.cols, w, b.tile.col + c)
        for c in range(hi, cols):
            counts[c] = count_of(&a.cols, w, b.tile.col + c)
    if a.pairwise:
        return
    for c in range(cols):
        if c > 0 and counts[c] == counts[c - 1]:    # (most are)
            reciprocals[c] = reciprocals[c - 1]
        else:
            reciprocals[c] = 1 / counts[c] if counts[c] else 0


cdef inline bint is_power_of_two(double x) noexcept nogil:
    cdef int64_t n = <int64_t>x if -1e18 < x < 1e18 else 3
    n = -n if n < 0 else n
    return n & (n - 1) == 0


cdef double odd_part(double x) noexcept nogil:
    """Return an integer that is not 0, without its factors of 2."""
    while nearest_int(x * 0.5) * 2 == x:
        x *= 0.5
    return x


cdef void free_average(Average *a) noexcept:
    cdef Py_ssize_t i
    free(a.lead)
    for i in range(MOST_DIVISORS):
        free(a.reciprocals[i].high)
    free_frame(&a.frame)


cdef int set_reciprocals(Average *a, Reciprocals *parts, double by) except -1:
    """Set the parts of the reciprocals of one row's divisors. Return whether they exist."""
    cdef Py_ssize_t i, nbytes
    cdef double divisor, last = 0, high = 0, low = 0
    cdef const Window *cols = &a.frame.problem.cols
    cdef int result_bits = 24 if is_float_code(a.result) else 8 * dtype_bytes[a.result]
    parts.by = by
    parts.count = 1 if a.divisor or not a.cols.vary else a.frame.problem.cols.out
    free(parts.high)
    nbytes = parts.count * 8 + VEC_BYTES
    a.table_bytes += 4 * nbytes
    parts.high = <char *>malloc(4 * nbytes)
    if parts.high == NULL:
        raise MemoryError("fastpool: no memory for divisors")
    memset(parts.high, 0, 4 * nbytes)       # (of a window without elements they stay 0)
    parts.low = parts.high + nbytes
    parts.nearest, parts.minus = parts.high + 2 * nbytes, parts.high + 3 * nbytes
    for i in range(parts.count):
        divisor = by * count_of(&a.cols, cols, i) if parts.count > 1 else by
        if not divisor:
            continue
        if divisor != last:                 # (most are like the one before)
            last = divisor
            if not split_reciprocal(divisor, result_bits, 24 if a.small_floats else 53, &high,
                                    &low):
                return False
            a.quick_ints &= not is_float_code(a.result) or odd_part(divisor) < MOST_ODD_PART
        (<float *>parts.nearest)[i] = <float>(1 / divisor)
        (<float *>parts.minus)[i] = <float>-divisor
        if a.small_floats:
            (<float *>parts.high)[i], (<float *>parts.low)[i] = <float>high, <float>low
        else:
            (<double *>parts.high)[i], (<double *>parts.low)[i] = high, low
    return True


cdef int set_all_reciprocals(Average *a, divisors) except -1:
    """Set the reciprocals of all divisors, or of none."""
    cdef Py_ssize_t i
    a.divisors, a.table_bytes = 0, 0
    for i, by in enumerate(divisors):
        if not HAS_FMA or not set_reciprocals(a, &a.reciprocals[i], by):
            a.divisors = 0
            break
        a.divisors = <int>i + 1
    return 0


cdef int plan_average(Average *a, work) except -1:
    """Set an average pooling."""
    cdef Problem *p = &a.frame.problem
    cdef Tiling *t = &a.frame.tiling
    cdef Py_ssize_t sizes[SUM_AREAS]
    cdef Py_ssize_t outputs, elements, slabs = 1, i
    set_frame(&a.frame, work)
    a.frame.run = run_average
    read_fields(&a.ignore_nan, work, AVERAGE_FIELDS)
    a.result, a.rounding = CODES[work.result], ROUNDINGS[work.rounding]
    strategy = work.strategy
    a.whole, a.small = work.whole, strategy == "small_windows"
    a.pixels, a.bytes = strategy == "pixels", strategy == "byte_columns"
    a.ints = strategy == "int_columns"
    a.terms = work.terms
    a.divisor, a.most_divisor = work.divisor, work.most_divisor
    if is_float_code(p.code):
        # A sum that is carried along never gets rid of an infinity or NaN.
        if a.carries_rows or a.carries_cols or a.ignore_nan or a.rounds_once:
            a.limit = 1e308
    elif not is_float_code(a.result) and p.size >= 4:
        a.limit = 1 << 51                   # quotients could have more bits than a double otherwise
    *leads, rows, cols = work.counts
    set_counts(&a.rows, rows)
    set_counts(&a.cols, cols)
    if leads:
        a.lead = <Counts *>malloc(len(leads) * sizeof(Counts))
        if a.lead == NULL:
            raise MemoryError("fastpool: no memory for divisors")
        memset(a.lead, 0, len(leads) * sizeof(Counts))
        for i in range(p.leads):
            set_counts(&a.lead[i], leads[i])
            slabs *= imax(1, work.lead_taps[i])
    a.quick_ints = a.ints and a.result not in (F32, F64, I64, U64, BOOL)
    set_all_reciprocals(a, work.divisors)
    if a.small_floats and a.divisors == 0:
        a.small_floats = False              # (their reciprocals would be too short)
        set_all_reciprocals(a, work.divisors)
    elements, outputs = a.band, a.block
    if not 0 < a.most_digits <= MOST_PARTS:
        raise ValueError(f"{a.most_digits} digits")
    for i in range(<int>SUM_AREAS):
        sizes[i] = outputs
    sizes[<int>OFFSETS] = slabs * (1 + a.interleaves + (a.split > 0))
    sizes[<int>PLACES] = 2 * t.cols if a.carries_cols else 0
    sizes[<int>COLUMN_COUNTS] = 2 * t.cols if a.cols.vary and not a.divisor else 0
    sizes[<int>SPLIT] = 2 * (a.split + WIDE) if a.split else 0
    sizes[<int>DIGITS] = MOST_WORDS * (outputs + WIDE)
    sizes[<int>COLUMNS] = elements * (a.most_digits if a.carries_rows else 1)
    sizes[<int>PREFIX] = elements + work.lag * (INTERLEAVED if a.interleaves else t.channels)
    sizes[<int>ROWS], sizes[<int>ROW_PLACES] = work.rows * a.pitch, work.rows
    sizes[<int>NO_ROW], sizes[<int>ONE_ROW] = a.zeros, a.pitch
    sizes[<int>ELEMENTS] = ceil_div(work.interleaved * p.size, 8)
    if a.pairwise:
        sizes[<int>DIGITS] = a.parts
        sizes[<int>COLUMNS] = a.block_rows * a.band
        sizes[<int>PREFIX] = imax(a.long_rows, a.block_rows if a.whole else 1) * a.band
        sizes[<int>PREFIX] += MOST_SPLIT * (VEC_BYTES + 1)
        sizes[<int>ROWS] = 2 * (MOST_LEAF * a.pitch + a.lines * a.band)
        sizes[<int>TALL] = a.tall
        sizes[<int>NO_ROW], sizes[<int>DIVISORS] = a.pitch, (3 * PAIR_SLOTS + 2) * t.cols
    else:
        sizes[<int>TALL] = 0
    sizes[<int>FACTORS] = 0
    if p.size == 1 and not is_float_code(a.result):
        sizes[<int>FACTORS] = FACTOR_SLOTS * FACTOR_ARRAYS * (t.cols + VEC_BYTES // 4)
    sizes[<int>INT_COLUMNS] = ceil_div(a.int_bands * elements, 2)
    sizes[<int>INT_PREFIX] = elements if a.ints else 0
    sizes[<int>INT_ROWS] = ceil_div(slabs * a.int_rows * elements, 2)
    sizes[<int>RESULTS] = 0
    if a.interleaves:
        sizes[<int>RESULTS] = ceil_div(t.rows * t.cols * INTERLEAVED * dtype_bytes[a.result], 8)
    for i in range(<int>SUM_AREAS):
        sizes[i] *= 8
    lay_out_scratch(&a.frame.scratch, sizes, SUM_AREAS)
    return 0
