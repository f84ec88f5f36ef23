# Takes:   many small planes, channels first; with indices too
# Reads:   a transposed copy of some planes, as pixels whose channels are the planes
# Scratch: the copy (SLAB), its results (POOLED, POOLED_PLACES), what pools the copy (CHAIN)
# Wins:    AVX-512, an EPYC: float16 8x168x3x3 k3 37 -> 5 us, bfloat16 1x576x15x15 k8 s2 92 -> 31,
#          uint8 1x256x20x20 k13 44 -> 22; with indices int16 32x768x3x3x2, one window, 5870 -> 113,
#          float32 1x136x14x14 k2 56 -> 23, 8x208x18x20 k1x3 s1x3 323 -> 211 (a Xeon). It declines
#          float32 1x64x16x16 k3 (3 -> 11).
#
# The planes of a task become the channels of one image, and another Pool pools it, by any strategy
# for channels that are last. So rows of a few elements, gaps and strides cost no more than others.

cdef void interleaved_view(View *view, char *data, const Problem *p, bint outputs) noexcept nogil:
    """Set the view of pixels in scratch. `p` is the problem that pools them."""
    cdef Py_ssize_t step = p.channels, axis = p.leads + 2
    view.data, view.batch, view.channel = data, 0, 1
    while axis > 0:
        axis -= 1
        if axis < p.leads:
            view.lead[axis] = step
        elif axis == p.leads:
            view.row = step
        else:
            view.col = step
        step *= extent_of(p, axis, outputs)


cdef void move_planes(const View *apart, char *pixels, const Pool *p, Py_ssize_t first,
                      Py_ssize_t planes, bint outputs, int size) noexcept nogil:
    """Interleave some planes of the input, or write the interleaved outputs to their planes."""
    cdef const Problem *problem = &p.frame.problem
    cdef Py_ssize_t group = p.frame.tiling.planes, lane = 0, r, at, run
    cdef bint spaced = evenly_spaced(problem, apart)
    cdef Runs runs = runs_of(problem, apart, outputs)
    cdef char *plane
    cdef char *pixel
    while lane < planes:
        run = planes - lane
        if not spaced:                  # planes of one batch
            run = imin(run, problem.channels - (first + lane) % problem.channels)
        at = plane_offset(problem, apart, first + lane)
        if not outputs and runs.count == 1:
            for r in range(run):        # pieces of many planes in turns: no processor foresees that
                plane = apart.data + (at + r * apart.channel) * size
                prefetch_bytes(plane, runs.length * size)
        for r in range(runs.count):
            plane = apart.data + (at + run_offset(problem, apart, &runs, r, outputs)) * size
            pixel = pixels + (r * runs.length * group + lane) * size
            if outputs:
                transpose(plane, apart.channel, pixel, group, runs.length, run, size)
            else:
                transpose(pixel, group, plane, apart.channel, run, runs.length, size)
        lane += run


cdef void tile_planes_as_pixels(const Pool *p, const Job *job, Py_ssize_t task,
                                Scratch *scratch) noexcept nogil:
    """Pool the planes of a task."""
    cdef const Problem *problem = &p.frame.problem
    cdef Py_ssize_t group = p.frame.tiling.planes, first = task * group, t
    cdef Py_ssize_t planes = imin(group, problem.batch * problem.channels - first)
    cdef char *pixels = area_of(p, scratch.area, SLAB)
    cdef Pool pool = p.inner[0]
    cdef Scratch inner
    cdef Job part
    pool.indexing.base += plane_base(p, first)
    inner.area, inner.margins = area_of(p, scratch.area, CHAIN), -1
    part.frame, part.more, part.scratch = &pool.frame, NULL, &inner
    interleaved_view(&part.x, pixels, &pool.frame.problem, False)
    interleaved_view(&part.y, area_of(p, scratch.area, POOLED), &pool.frame.problem, True)
    interleaved_view(&part.z, area_of(p, scratch.area, POOLED_PLACES), &pool.frame.problem, True)
    if planes < group:                  # (what the other lanes hold does not matter)
        memset(pixels, 0, plane_elements(problem, False) * group * problem.size)
    move_planes(&job.x, pixels, p, first, planes, False, problem.size)
    for t in range(pool.frame.tiling.tasks):
        pool.frame.run(&part, t, &inner)
    move_planes(&job.y, part.y.data, p, first, planes, True, problem.size)
    if p.with_indices:
        move_planes(&job.z, part.z.data, p, first, planes, True, <int>p.indexing.bytes)


cdef Py_ssize_t plane_elements(const Problem *p, bint outputs) noexcept nogil:
    """Return the elements or the outputs of one plane."""
    cdef Py_ssize_t total = 1, axis
    for axis in range(p.leads + 2):
        total *= extent_of(p, axis, outputs)
    return total


cdef void planes_as_pixels_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of all areas, in bytes."""
    cdef const Problem *problem = &p.frame.problem
    cdef Py_ssize_t group = p.frame.tiling.planes
    size[<int>SLAB] = plane_elements(problem, False) * group * problem.size
    size[<int>POOLED] = plane_elements(problem, True) * group * problem.size
    if p.with_indices:
        size[<int>POOLED_PLACES] = plane_elements(problem, True) * group * p.indexing.bytes
    size[<int>CHAIN] = p.inner.frame.scratch.nbytes
