# Share the tasks of a call among threads.
#
# Each thread begins with tasks of its own, neighbours in memory. Then it takes tasks that other
# threads have not begun, so that a thread which the system does not run keeps no work.
#
# OpenMP's join still waits for such a thread, for milliseconds if another program has its
# processor. So a call on the default number of threads measures what it lost. If it lost much, such
# calls stay serial for a while (a pause), as TCP backs off. They also do if two of them meet: then
# the program starts threads itself. No pause overrules an explicit number of threads.
#
# OpenMP's threads sleep some milliseconds after a call. Waking them takes up to 0.2 ms, more than a
# medium call gains. So a medium call wakes them only soon after another call: more may follow.
#
# Two cores, each with another program: calls from 1 ms on take 1.0 to 1.2 times as long as on one
# thread, and took 5 to 8 times as long with schedule='static' and no pauses (ci/busy.py).

cdef enum:
    LOST_NS = 50000             # a call may lose this, plus
    LOST_PERCENT = 30           # this part of its time
    PAUSE_FACTOR = 50           # a pause is this often what was lost,
    SHORTEST_PAUSE_NS = 20000000
    LONGEST_PAUSE_NS = 1000000000
    SOON_NS = 2000000           # after a call (SOON_MS of threads.py)


cdef enum ByDefault:            # is the number of threads the default?
    AS_GIVEN                    # no, or it is 1
    SHARED                      # yes: several threads share the work, unless there is a pause
    SHARED_SOON                 # yes: and only soon after another call


# What one thread has to do. (64 bytes, so that counters share no cache line but at its edges.)
cdef struct Share:
    Py_ssize_t next, stop       # its own tasks that nobody has begun
    char rest[48]


cdef struct Pause:
    int64_t until               # by wall_ns
    int64_t lost, took          # by the call that began it; 0 if there were two calls at once


cdef Pause pause
cdef int64_t last_call = 0      # by wall_ns, when a call on the default number of threads ended
cdef int shared_calls = 0       # such calls that run on several threads now

ctypedef void (*task_t)(void *call, Py_ssize_t task, int thread) noexcept nogil


cdef void begin_pause(int64_t now, int64_t lost, int64_t took) noexcept nogil:
    cdef int64_t length = PAUSE_FACTOR * lost, until = load_relaxed(&pause.until)
    if length < SHORTEST_PAUSE_NS:
        length = SHORTEST_PAUSE_NS
    if length > LONGEST_PAUSE_NS:
        length = LONGEST_PAUSE_NS
    if now + length > until:
        pause.lost, pause.took = lost, took
        store_relaxed(&pause.until, now + length)


cdef inline bint stays_serial(int by_default) noexcept nogil:
    """Does a call on the default number of threads run on one now?"""
    cdef int64_t now = wall_ns()
    if now < load_relaxed(&pause.until):
        return True
    return by_default == SHARED_SOON and now - load_relaxed(&last_call) > SOON_NS


cdef inline int threads_of(threads, int by_default) except -1:
    """Return the threads that a call from Python asks for. `threads` returns them, or is None."""
    if threads is None or (by_default and stays_serial(by_default)):
        return 1                        # (Python takes 3 us to find the default)
    return threads()


cdef Py_ssize_t run_share(task_t run, void *call, Share *shares, int thread,
                          int threads) noexcept nogil:
    """Run the tasks of a thread, then what is left of others. Return how many there were."""
    cdef Py_ssize_t task, count = 0
    cdef Share *share
    cdef int i
    for i in range(threads):
        share = &shares[(thread + i) % threads]
        while True:
            task = take_next(&share.next)
            if task >= share.stop:
                break
            run(call, task, thread)
            count += 1
    return count


cdef void run_shares(task_t run, void *call, Py_ssize_t first, Py_ssize_t stop, int threads,
                     int by_default) noexcept nogil:
    """Run tasks on several threads. If their number is the default, measure what was lost."""
    cdef Share shares[MAX_THREADS]
    cdef Py_ssize_t mine = 1, count
    cdef int64_t began = 0, cpu = 0, done = 0, ended, waited, stood_still
    cdef int thread
    for thread in range(threads):
        shares[thread].next = first + (stop - first) * thread // threads
        shares[thread].stop = first + (stop - first) * (thread + 1) // threads
    threads_start(threads)
    if by_default:
        began, cpu = wall_ns(), thread_ns()
    for thread in prange(threads, schedule='static', chunksize=1, num_threads=threads):
        count = run_share(run, call, shares, thread, threads)
        if thread == 0 and by_default:
            note_done(&mine, &done, &cpu, count)
    if by_default:
        ended = wall_ns()
        stood_still = done - began - cpu
        # (To wait for another thread's last task, which takes as long as one here, is no loss.)
        waited = ended - done - (done - began) // (mine if mine else 1)
        waited = (waited if waited > 0 else 0) + (stood_still if stood_still > 0 else 0)
        if waited > LOST_NS + (ended - began) * LOST_PERCENT // 100:
            begin_pause(ended, waited, ended - began)


cdef void note_done(Py_ssize_t *mine, int64_t *done, int64_t *cpu,
                    Py_ssize_t count) noexcept nogil:
    """Note the tasks of the calling thread, when it had no more, and its processor time till then.

    (A function, because Cython makes variables that a loop of prange assigns private.)
    """
    mine[0], done[0], cpu[0] = count, wall_ns(), thread_ns() - cpu[0]


cdef void run_tasks(task_t run, void *call, Py_ssize_t first, Py_ssize_t stop, int threads,
                    int by_default) noexcept nogil:
    """Run tasks on as many threads as `thread_count` said."""
    cdef Py_ssize_t task
    if threads > 1 and by_default and add_relaxed(&shared_calls, 1):
        begin_pause(wall_ns(), 0, 0)
        add_relaxed(&shared_calls, -1)
        threads = 1
    if threads == 1:
        for task in range(first, stop):
            run(call, task, 0)
    else:
        run_shares(run, call, first, stop, threads, by_default)
        if by_default:
            add_relaxed(&shared_calls, -1)
    if by_default:
        store_relaxed(&last_call, wall_ns())


cdef int thread_count(Py_ssize_t tasks, int threads, int by_default) noexcept nogil:
    """Return on how many threads tasks run now, as far as the system gives them."""
    threads = <int>imax(1, imin(imin(threads, tasks), MAX_THREADS))
    if threads == 1 or (by_default and stays_serial(by_default)):
        return 1
    return threads_given(threads)


cdef inline Py_ssize_t most_threads(const Frame *frame) noexcept nogil:
    """Return how many threads have a task, and memory for their scratch."""
    return imin(frame.tiling.tasks, frame.scratch.threads)


cdef void run_tile(void *call, Py_ssize_t task, int thread) noexcept nogil:
    cdef Job *job = <Job *>call
    job.frame.run(job, task, &job.scratch[thread])


cdef bint run_job(Job *job, Py_ssize_t first, Py_ssize_t stop, int threads,
                  int by_default) noexcept nogil:
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
    run_tasks(run_tile, job, first, stop, threads, by_default)
    job.scratch = NULL
    unpoison_redzones(block, nbytes)
    if block != <size_t *>small:
        give_scratch(block)
    return True
