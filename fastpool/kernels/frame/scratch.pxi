# Scratch: one block of memory per call, an equal part of it per thread, and areas in each part.
#
# A reduction states the sizes of its areas, for the largest tile. A block beyond the
# stack outlives its call, because mapping fresh pages would cost more than a small pooling. Calls
# take the block and put it back by an atomic exchange, because not all of them hold the GIL.

cdef enum:
    SLACK = 512             # bytes after every area: whole vectors are read past the last element
    STACK_BYTES = 8192      # scratch to this size is on the stack: exchanging blocks takes 15 ns
    KEEP_BYTES = 8 << 20    # scratch to this size outlives a call
    CALL_BYTES = 16 << 20   # scratch of all threads, next to twice the arrays (docs/promises.md)


cdef void lay_out_scratch(ScratchLayout *scratch, const Py_ssize_t *sizes,
                          int areas) noexcept nogil:
    """Lay out the scratch of one thread, from the sizes of its areas in bytes."""
    cdef int i
    scratch.nbytes, scratch.areas = REDZONE, areas
    for i in range(areas):
        scratch.offsets[i] = scratch.nbytes
        scratch.nbytes += round_up(sizes[i], 64) + (SLACK if sizes[i] else 0) + REDZONE


cdef void limit_scratch(ScratchLayout *scratch, Py_ssize_t array_bytes) noexcept nogil:
    """Set the threads whose scratch fits into the memory of a call that reads and writes arrays."""
    scratch.threads = imax(1, (2 * array_bytes + CALL_BYTES) // imax(1, scratch.nbytes))


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
