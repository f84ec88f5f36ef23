# Trees of sums over the axes of one window. A tree adds the taps along the first axis, another one
# the sums along the next. A tap that is not there is a zero, or left out.

ctypedef fused acc_t:
    float
    double


ctypedef fused count_t:                 # of NaN: doubles if floats do not hold all of them
    float
    double


cdef struct PairAxis:                   # one axis of the window of one output
    Py_ssize_t taps, lo, hi             # taps from lo to hi are elements
    Py_ssize_t base, step               # bytes to tap lo, and from one tap to the next


cdef struct Trees:                      # sums over all axes but one, or over the columns of a row
    PairAxis axes[MAX_LEADS + 1]        # the one that is added first comes first
    int count
    Py_ssize_t cols, n                  # columns of a row, elements of one
    Py_ssize_t planes, plane            # that are added at once, and bytes from one to the next
    Py_ssize_t band                     # from the sums of one plane to those of the next
    Py_ssize_t col, size                # bytes from one column to the next, and of an element
    bint direct                         # elements are sums
    convert_t convert                   # makes them sums
    add_converted_t add                 # converts and adds rows of neighbours, or NULL
    int word                            # of integers
    part_t *part                        # of doubles, or NULL
    bint ignores, counts                # NaN are zeros; they are counted, in place of elements
    bint kept                           # lines of these elements are converted
    bint *found                         # set if there was a NaN
    char *zeros
    char *lines                         # of converted elements, and whether they were NaN
    Py_ssize_t pitch                    # of lines and of parts


cdef void set_pair_axis(PairAxis *axis, const Window *w, Py_ssize_t output,
                        Py_ssize_t step) noexcept nogil:
    """Set all but the base. `step` is that from one element of the axis to the next."""
    cdef Py_ssize_t first, start = window_start(w, output), count = real_taps(w, output, &first)
    axis.taps = window_stop(w, output) - start if w.irregular else w.kernel
    axis.lo = (first - start) // w.dilation if count else 0
    axis.hi, axis.base, axis.step = axis.lo + count, 0, w.dilation * step


cdef void set_lead_axes(Trees *trees, const Block *b) noexcept nogil:
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t axis = p.leads, lead = b.tile.lead, slabs = 1, count
    while axis > 0:
        axis -= 1
        set_pair_axis(&trees.axes[axis], &p.lead[axis], lead % p.lead[axis].out, 0)
        lead //= p.lead[axis].out
        count = trees.axes[axis].hi - trees.axes[axis].lo
        trees.axes[axis].step = b.offsets[slabs] if count > 1 else 0
        slabs *= count


cdef const acc_t *converted(acc_t *line, acc_t *nans, const Trees *trees,
                            const char *src) noexcept nogil:
    """Set a row of elements as sums. Return it, or which of them are NaN if these are counted."""
    cdef Py_ssize_t c, n = trees.n, runs = trees.cols
    if trees.col == n * trees.size:
        n, runs = n * runs, 1
    if acc_t is double:
        if trees.part != NULL and trees.size == 8 and not trees.ignores:    # doubles
            for c in range(runs):
                take_parts(line + c * n, <const double *>(src + c * trees.col), n, trees.part)
            return line
    if trees.ignores and runs == 1 and trees.size == sizeof(acc_t):
        trees.found[0] |= take_nans(line, <const acc_t *>src, nans, n)
    else:
        for c in range(runs):
            trees.convert(line + c * n, src + c * trees.col, n, trees.word)
        if trees.ignores:
            trees.found[0] |= take_nans(line, <const acc_t *>line, nans, trees.n * trees.cols)
    if acc_t is double:
        if trees.part != NULL:
            take_parts(line, line, trees.n * trees.cols, trees.part)
    return nans if trees.counts else line


cdef void begin_trees(Trees *trees, Py_ssize_t n, Py_ssize_t pitch,
                      const acc_t *tag) noexcept nogil:
    """Set all but the axis of trees over one axis of n neighbouring sums. Nothing is padding."""
    trees.count, trees.cols, trees.n = 1, 1, n
    trees.planes, trees.plane, trees.band = 1, 0, 0
    trees.size, trees.col = sizeof(acc_t), n * sizeof(acc_t)
    trees.direct, trees.ignores, trees.counts, trees.add = True, False, False, NULL
    trees.lines, trees.zeros, trees.pitch = NULL, NULL, pitch


cdef void begin_pairs(pairs_of_t *pairs, acc_t *to, Py_ssize_t pitch, Py_ssize_t rows,
                      Py_ssize_t width) noexcept nogil:
    """Set all but the taps and their steps. Sums are not divided."""
    pairs.to, pairs.pitch, pairs.rows, pairs.width = to, pitch, rows, width
    pairs.step = pairs.last_step = 0
    pairs.stride, pairs.has_room, pairs.division = 1, False, NO_DIVISION
    pairs.by = pairs.high = pairs.low = NULL


cdef void add_leaf(acc_t *to, const Trees *trees, Py_ssize_t first, Py_ssize_t taps,
                   const char *src) noexcept nogil:
    """Add a few taps of the first axis."""
    cdef const PairAxis *axis = &trees.axes[0]
    cdef Py_ssize_t t
    cdef const char *at
    cdef acc_t *line = <acc_t *>trees.lines
    cdef pairs_of_t pairs
    begin_pairs(&pairs, to, trees.band, trees.planes, trees.cols * trees.n)
    pairs.count = <int>taps
    pairs.step = pairs.last_step = trees.plane // trees.size
    pairs.has_room = trees.band - pairs.width >= VEC_BYTES // <Py_ssize_t>sizeof(acc_t)
    if trees.add != NULL and axis.lo <= first and first + taps <= axis.hi:
        for t in range(taps):
            pairs.taps[t] = src + axis.base + (first + t - axis.lo) * axis.step
        trees.add(&pairs)
        return
    for t in range(taps):
        at = src + axis.base + (first + t - axis.lo) * axis.step
        if first + t < axis.lo or first + t >= axis.hi:
            pairs.taps[t] = trees.zeros
        elif trees.direct:
            pairs.taps[t] = at
        else:
            pairs.taps[t] = converted(line, line + MOST_LEAF * trees.pitch, trees, at)
            line += trees.pitch
    add_in_pairs(&pairs, to)


cdef inline Py_ssize_t halves_of(Py_ssize_t taps) noexcept nogil:
    """Return into how many equal parts trees are halved at most."""
    cdef Py_ssize_t count = 1
    while taps > MOST_LEAF and taps % 2 == 0:
        taps, count = taps // 2, 2 * count
    return count


cdef bint add_halves(acc_t *to, Trees *trees, Py_ssize_t first, Py_ssize_t taps,
                     const char *src, acc_t *spare) noexcept nogil:
    """Add halves of a tree over the first axis as planes, then these in pairs.

    Return False if halves are not alike, or have no room. `trees` is as before in the end.
    """
    cdef const PairAxis *axis = &trees.axes[0]
    cdef Py_ssize_t width = trees.cols * trees.n, size = taps, count = 1
    cdef Py_ssize_t planes = trees.planes, plane = trees.plane, band = trees.band, t
    cdef acc_t *other = spare + trees.pitch
    cdef pairs_of_t pairs
    if first < axis.lo or first + taps > axis.hi or not (trees.direct or trees.add != NULL):
        return False
    if planes > 1 and plane != taps * axis.step:
        return False
    while size > MOST_LEAF and size % 2 == 0 and 2 * count * planes * width <= trees.pitch:
        size, count = size // 2, 2 * count
    if count == 1:
        return False
    trees.planes, trees.plane, trees.band = count * planes, size * axis.step, width
    add_tree(spare, trees, 0, first, size, src, other)
    trees.planes, trees.plane, trees.band = planes, plane, band
    while count > 1:                        # (not in place, because vectors overlap)
        size = 2 if count == 2 else 4
        count //= size
        begin_pairs(&pairs, other, width, count * planes, width)
        pairs.count, pairs.step, pairs.last_step = <int>size, size * width, size * width
        for t in range(size):
            pairs.taps[t] = spare + t * width
        if count == 1:
            pairs.to, pairs.pitch = to, band
        add_in_pairs(&pairs, to)
        spare, other = other, spare
    return True


cdef bint add_part(acc_t *to, Trees *trees, int a, Py_ssize_t first, Py_ssize_t taps,
                   const char *src, acc_t *spare, bint found) noexcept nogil:
    """Add the tree of some taps of an axis to sums, or set them if none is `found` yet."""
    if not found:
        return add_tree(to, trees, a, first, taps, src, spare)
    if add_tree(spare, trees, a, first, taps, src, spare + trees.pitch):
        add_to(to, spare, trees.cols * trees.n, trees.planes, trees.band)
    return True


cdef bint add_tree(acc_t *to, Trees *trees, int a, Py_ssize_t first, Py_ssize_t taps,
                   const char *src, acc_t *spare) noexcept nogil:
    """Set sums to the tree of some taps of an axis. Return False, with nothing set, if all are 0.

    `spare` has room for the parts of all trees below.
    """
    cdef const PairAxis *axis = &trees.axes[a]
    cdef Py_ssize_t half = taps // 2
    cdef bint found
    if first + taps <= axis.lo or first >= axis.hi:
        return False
    if a == 0 and taps <= MOST_LEAF:
        add_leaf(to, trees, first, taps, src)
        return True
    if a == 0 and add_halves(to, trees, first, taps, src, spare):
        return True
    if taps == 1:
        return add_tree(to, trees, a - 1, 0, trees.axes[a - 1].taps,
                        src + axis.base + (first - axis.lo) * axis.step, spare)
    found = add_tree(to, trees, a, first, half, src, spare)
    found = add_part(to, trees, a, first + half, half, src, spare, found)
    if taps % 2:
        found = add_part(to, trees, a, first + taps - 1, 1, src, spare, found)
    return found
