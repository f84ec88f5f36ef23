# Scratch: one block of memory per call, an equal part of it per thread, and areas in each part.
#
# A strategy states the sizes of its areas in its own file, for the largest tile. A block beyond the
# stack outlives its call, because mapping fresh pages would cost more than a small pooling. Calls
# take the block and put it back by an atomic exchange, because not all of them hold the GIL.

cdef enum:
    SLACK = 512             # bytes after every area: whole vectors are read past the last element
    STACK_BYTES = 8192      # scratch to this size is on the stack: exchanging blocks takes 15 ns
    KEEP_BYTES = 8 << 20    # scratch to this size outlives a call


cdef void plan_scratch(Pool *p) noexcept nogil:
    """Lay out the scratch of one thread."""
    cdef Py_ssize_t size[AREAS]         # in elements, or in keys if p has indices
    cdef Py_ssize_t element = p.key_bytes if p.with_indices else p.problem.size
    cdef int i
    memset(size, 0, sizeof(size))
    if p.strategy == RUNNING_MAXIMA:
        size[<int>SLAB], element = far_scratch(p), 1
    elif p.strategy == TAPS:
        taps_scratch(p, size)
    elif p.with_indices:
        pairs_scratch(p, size)
    else:
        values_scratch(p, size)
    p.scratch.nbytes = REDZONE
    for i in range(<int>AREAS):
        p.scratch.offsets[i] = p.scratch.nbytes
        p.scratch.nbytes += round_up(size[i] * element, 64) + (SLACK if size[i] else 0) + REDZONE


cdef extern from *:
    """
    #define exchange(place, block) __atomic_exchange_n((place), (block), __ATOMIC_ACQ_REL)
    """
    size_t *exchange(size_t **, size_t *) noexcept nogil

cdef size_t *kept = NULL                # the block's first word holds its size


cdef size_t *take_scratch(size_t nbytes) noexcept nogil:
    """Return a block of at least `nbytes`. Return NULL if there is no memory."""
    cdef size_t *block = NULL
    if nbytes <= KEEP_BYTES:
        block = exchange(&kept, NULL)
        if block != NULL and block[0] >= nbytes:
            return block
        free(block)
    block = <size_t *>malloc(nbytes)
    if block != NULL:
        block[0] = nbytes
    return block


cdef void give_scratch(size_t *block) noexcept nogil:
    """Keep a block for the next call, or free it."""
    free(exchange(&kept, block) if block[0] <= KEEP_BYTES else block)
