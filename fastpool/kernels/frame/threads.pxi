# Share the tasks of a pooling among threads.

cdef void run_tasks(Job *job, Py_ssize_t first, Py_ssize_t stop, int threads) noexcept nogil:
    cdef Py_ssize_t task
    if threads == 1:
        for task in range(first, stop):
            job.frame.run(job, task, &job.scratch[0])
        return
    for task in prange(first, stop, schedule='static', num_threads=threads):
        job.frame.run(job, task, &job.scratch[threadid()])


cdef inline Py_ssize_t most_threads(const Frame *frame) noexcept nogil:
    """Return how many threads have a task, and memory for their scratch."""
    return imin(frame.tiling.tasks, frame.scratch.threads)


cdef inline int thread_count(const Frame *frame, int threads) noexcept nogil:
    """Return how many threads have a task, as far as the system gives them."""
    threads = <int>imax(1, imin(imin(threads, most_threads(frame)), MAX_THREADS))
    return threads if threads == 1 else threads_given(threads)


cdef bint run_job(Job *job, int threads) noexcept nogil:
    return run_some(job, 0, job.frame.tiling.tasks, threads)


cdef bint run_some(Job *job, Py_ssize_t first, Py_ssize_t stop, int threads) noexcept nogil:
    """Run some tasks on as many threads as `thread_count` said.

    If there is no memory for their scratch, return False with nothing done.
    """
    cdef const ScratchLayout *layout = &job.frame.scratch
    cdef size_t stride = layout.nbytes + 64, nbytes = 128 + threads * stride
    cdef Scratch scratch[MAX_THREADS]
    cdef char small[STACK_BYTES]
    cdef size_t *block = <size_t *>small if nbytes <= STACK_BYTES else take_scratch(nbytes)
    cdef int i
    if block == NULL:
        return False
    for i in range(threads):
        scratch[i].area = <char *>((<uintptr_t>block + 64 + i * stride + 63) // 64 * 64)
        scratch[i].margins = -1
        poison_redzones(scratch[i].area, layout.nbytes, layout.offsets, layout.areas)
    job.scratch = scratch
    run_tasks(job, first, stop, threads)
    job.scratch = NULL
    unpoison_redzones(block, nbytes)
    if block != <size_t *>small:
        give_scratch(block)
    return True
