# An average pooling: sums of windows, and what each is divided by.

cdef enum:
    MOST_WORDS = 4          # of an integer
    MOST_DIVISORS = 16      # of rows, whose reciprocals are kept
    FACTOR_SLOTS = 4        # of rows that are quantised alike
    FACTOR_ARRAYS = 6       # of doubles, in each slot (quantize.pxi)
    MOST_SPLIT = 8          # stride of columns that are split (along.pxi)
    BYTE_SLOTS = 4          # divisors of rows of means that are kept (byte_rows.pxi)
    MIN_APART = 32          # outputs of a row from which `add_apart` is faster
    PAIR_SLOTS = 4          # rows of divisors that are kept (pairwise.pxi)


cdef enum SumArea:          # areas of one thread's scratch, sized in units of 8 bytes
    OFFSETS                 # of the slabs that leading taps select, also if interleaved
    COLUMNS                 # columns of rows of windows added up, with margins of 0
    SPLIT                   # parts of long windows and of strides; whole planes
    PARTS                   # of trees
    TALL                    # rows of parts of trees that neighbours share
    ROWS                    # of the input, as floats or doubles
    NO_ROW                  # zeros
    HIGH                    # sums of a block of output rows
    LOW                     # what HIGH is rounded by
    REST                    # what LOW is rounded by
    LOWER_HIGH              # sums of what is below the digits of elements near overflow
    LOWER_LOW
    LOWER_REST
    DIGITS                  # sums of one digit, or of all words of integers
    WILD                    # sums of infinities and NaN, or 0
    NANS                    # how many NaN a window has
    DIVISORS                # of each output, if they are not products of counts; or of rows
    RECIPROCALS
    FACTORS                 # of quantised means, of rows that are alike
    ELEMENTS                # of interleaved planes
    RESULTS                 # of interleaved planes
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
    double by                           # what the divisors have in common; all of one `by_value`
    Py_ssize_t count                    # of columns, or 1 if all are equal or `by_value`
    char *high                          # numbers of the type of sums, and 0 for a vector after them
    char *low


cdef struct Average:                    # an average pooling, ready to run
    Frame frame                         # (first: a Job points to it)
    # AVERAGE_FIELDS:
    Py_ssize_t ignore_nan, sequential, pairwise
    Py_ssize_t group                    # planes that are interleaved, or 0 (interleaved.pxi)
    Py_ssize_t block, block_rows        # outputs that are summed, and then divided
    Py_ssize_t band                     # elements in COLUMNS, of one row
    Py_ssize_t digit_bits               # of elements whose sums a double does not hold
    Py_ssize_t small_floats             # are exact sums floats?
    Py_ssize_t pitch                    # elements of a part of a row
    Py_ssize_t walks                    # are the columns of each output added alone?
    Py_ssize_t parts, lines, line       # elements of trees; rows that are converted at once, of one
    Py_ssize_t tall                     # elements of parts that neighbours share (tall_windows.pxi)
    Py_ssize_t byte_rows                # do rows of bytes enter and leave sums (byte_rows.pxi)?
    Py_ssize_t shorts                   # columns of these that are added before they are floats
    Py_ssize_t long_rows                # rows of sums whose columns are added at once
    Py_ssize_t whole                    # has each plane one window?
    Py_ssize_t signals                  # are these one row of neighbours?
    Py_ssize_t wide_counts              # do only doubles hold the numbers of NaN?
    Py_ssize_t by_value                 # has each divisor one reciprocal, not each column?
    # The rest:
    int result                          # code of the result's dtype
    int rounding
    double terms                        # more than the additions of a window
    double divisor                      # of all windows, or 0
    double most_divisor                 # of any window
    double limit                        # for sums, if not 0
    bint may_round                      # may a sum in double be rounded?
    Counts rows, cols
    Counts *lead
    Reciprocals reciprocals[MOST_DIVISORS]
    Py_ssize_t table_bytes              # of all reciprocals
    int divisors                        # for which there are reciprocals; 0 if not for all


AVERAGE_FIELDS = (
    "ignore_nan", "sequential", "pairwise", "group", "block", "block_rows", "band",
    "digit_bits", "small_floats", "pitch", "walks", "parts", "lines", "line", "tall", "byte_rows",
    "shorts", "long_rows", "whole", "signals", "wide_counts", "by_value",
)


cdef struct Row:                        # sums of a row of windows
    sums_t sums
    const double *word[MOST_WORDS]      # of integers that `sums` does not hold: the lowest first
    int words
    double *divisors                    # of each sum, if they are not products of counts
    double *reciprocals


cdef struct Factors:                    # of the rows of a tile that are quantised alike
    Py_ssize_t taps[FACTOR_SLOTS]       # of a window, but for those along the row
    double divisors[FACTOR_SLOTS]       # of these windows, but for the counts along the row
    int count                           # of all that were ever set


cdef struct Block:                      # some rows of a tile's outputs, of one plane
    const Average *average
    const Tile *tile
    const View *x                       # strides in bytes
    char *scratch
    const Py_ssize_t *offsets           # of slabs, in bytes
    Py_ssize_t slabs
    const double *counts                # of the tile's columns; NULL if all are equal
    double count                        # of each column, if `counts` is NULL
    const double *reciprocals           # 0 for a count of 0
    const quantization_t *quantization  # if results are quantised, else NULL
    bint ignores                        # is a NaN left out? Not if the tile has none
    Factors *factors


ROUNDINGS = {"half_even": HALF_EVEN, "half_away": HALF_AWAY, "trunc": TRUNC, "floor": FLOOR}


cdef inline double *doubles(const Average *a, char *scratch, SumArea area) noexcept nogil:
    return <double *>frame_area(&a.frame, scratch, <int>area)


cdef int set_counts(Counts *c, counts) except -1:
    """Copy the counts of an axis: one double, or `divisor_counts.Counts`."""
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


cdef void uncut_columns(Py_ssize_t *lo, Py_ssize_t *hi, const Average *a,
                        const Tile *tile) noexcept nogil:
    """Set which columns of a tile have all of their taps; none of an irregular axis."""
    lo[0] = imin(tile.cols, imax(0, a.cols.first - tile.col))
    hi[0] = imin(tile.cols, imax(lo[0], a.cols.last - tile.col))


cdef void set_column_counts(Block *b) noexcept nogil:
    """Set the counts of a tile's columns, or the one that all of them have."""
    cdef const Average *a = b.average
    cdef const Window *w = &a.frame.problem.cols
    cdef Py_ssize_t cols = b.tile.cols, c
    cdef double *counts = doubles(a, b.scratch, COLUMN_COUNTS)
    cdef double *reciprocals = counts + cols
    cdef Py_ssize_t lo, hi
    cdef Walk walk
    b.counts = b.reciprocals = NULL
    b.count = a.cols.value
    if a.divisor or not a.cols.vary:
        return
    uncut_columns(&lo, &hi, a, b.tile)
    if hi - lo == cols:
        b.count = <double>a.cols.kernel
        return
    b.counts, b.reciprocals = counts, reciprocals
    if w.irregular:
        start_walk(&walk, w, b.tile.col)
        for c in range(cols):
            counts[c] = <double>(walk.stop - walk.start)
            next_window(&walk, w)
    else:
        fill(counts + lo, hi - lo, <double>a.cols.kernel)
        for c in range(lo):
            counts[c] = count_of(&a.cols, w, b.tile.col + c)
        for c in range(hi, cols):
            counts[c] = count_of(&a.cols, w, b.tile.col + c)
    if a.pairwise or a.sequential:
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
    parts.count = a.frame.problem.cols.out if a.cols.vary and not a.by_value else 1
    free(parts.high)
    nbytes = parts.count * 8 + VEC_BYTES
    a.table_bytes += 2 * nbytes
    parts.high = <char *>malloc(2 * nbytes)
    if parts.high == NULL:
        raise MemoryError("fastpool: no memory for divisors")
    memset(parts.high, 0, 2 * nbytes)       # (of a window without elements they stay 0)
    parts.low = parts.high + nbytes
    for i in range(parts.count):
        divisor = by * count_of(&a.cols, cols, i) if parts.count > 1 else by
        if not divisor:
            continue
        if divisor != last:                 # (most are like the one before)
            last = divisor
            if not split_reciprocal(divisor, result_bits, 24 if a.small_floats else 53, &high,
                                    &low):
                return False
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
    cdef Py_ssize_t slabs = 1, i
    cdef bint floats, exact
    set_frame(&a.frame, work)
    a.frame.run = run_average
    read_fields(&a.ignore_nan, work, AVERAGE_FIELDS)
    a.result, a.rounding = CODES[work.result], ROUNDINGS[work.rounding]
    a.terms = work.terms
    a.divisor, a.most_divisor = work.divisor, work.most_divisor
    floats = is_float_code(p.code)
    exact = not (a.pairwise or a.sequential)
    a.may_round = floats or p.size >= 4
    if not is_float_code(a.result) and p.size >= 4:
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
    if exact:
        set_all_reciprocals(a, work.divisors)
        if a.small_floats and a.divisors == 0:
            a.small_floats = False          # (their reciprocals would be too short)
            set_all_reciprocals(a, work.divisors)
    for i in range(<int>SUM_AREAS):
        sizes[i] = 0
    sizes[<int>OFFSETS] = slabs * (2 if a.group else 1)
    sizes[<int>COLUMNS] = a.block_rows * a.band
    sizes[<int>SPLIT] = imax(a.long_rows, a.block_rows if a.whole else 1) * a.band
    # (Four columns of a stride of 3 are 4/3 of a band.)
    sizes[<int>SPLIT] += MOST_SPLIT * (VEC_BYTES + 1) + ceil_div(a.band, 3)
    sizes[<int>SPLIT] += t.cols         # (of windows apart)
    if a.shorts:                        # (after three numbers of each output, for a divisor)
        sizes[<int>SPLIT] += BYTE_SLOTS * (a.band * p.size + VEC_BYTES)
    if (a.whole or a.walks) and p.cols.size > BLOCK_COLUMNS:
        i = FULL_ROW + SOME_ROWS * BLOCK_COLUMNS
        sizes[<int>SPLIT] = imax(sizes[<int>SPLIT], i)
    sizes[<int>PARTS], sizes[<int>TALL], sizes[<int>NO_ROW] = a.parts, a.tall, a.pitch
    sizes[<int>ROWS] = 2 * (MOST_LEAF * a.pitch + a.lines * a.line)
    sizes[<int>HIGH] = a.block
    sizes[<int>NANS] = a.block if a.ignore_nan else 0
    sizes[<int>DIVISORS] = a.block if exact else (
        3 * PAIR_SLOTS * (t.cols + VEC_BYTES // 4) + 2 * t.cols)
    if exact and a.may_round:
        for area in (LOW, REST, LOWER_HIGH, LOWER_LOW, LOWER_REST, WILD, RECIPROCALS):
            sizes[<int>area] = a.block
        sizes[<int>DIGITS] = a.block * (1 if floats else MOST_WORDS)
    sizes[<int>COLUMN_COUNTS] = 2 * t.cols if a.cols.vary and not a.divisor else 0
    if p.size == 1 and not is_float_code(a.result):
        sizes[<int>FACTORS] = FACTOR_SLOTS * FACTOR_ARRAYS * (t.cols + VEC_BYTES // 4)
    sizes[<int>ELEMENTS] = ceil_div(work.interleaved * p.size, 8)
    sizes[<int>RESULTS] = ceil_div(t.rows * t.cols * a.group * dtype_bytes[a.result], 8)
    for i in range(<int>SUM_AREAS):
        sizes[i] *= 8
    lay_out_scratch(&a.frame.scratch, sizes, SUM_AREAS)
    return 0
