/* How many threads OpenMP and the system give, what is called in a child made by fork, clocks, and
 * the atomic operations of threads that share tasks.
 *
 * A build without OpenMP has one thread, and needs no threads of the system.
 *
 * If gcc's OpenMP runtime cannot start a thread, as under a limit of processes or of address
 * space, it ends the process. So the threads are created once before OpenMP is asked for them. */
#ifndef FASTPOOL_THREADS_H
#define FASTPOOL_THREADS_H

#include <stddef.h>
#include <stdint.h>

#define take_next(next) __atomic_fetch_add((next), 1, __ATOMIC_RELAXED)
#define add_relaxed(to, what) __atomic_fetch_add((to), (what), __ATOMIC_RELAXED)
#define load_relaxed(from) __atomic_load_n((from), __ATOMIC_RELAXED)
#define store_relaxed(to, what) __atomic_store_n((to), (what), __ATOMIC_RELAXED)

#ifndef _OPENMP

enum { HAS_OPENMP = 0 };
static inline int openmp_limit(void) { return 1; }
static inline int64_t wall_ns(void) { return 0; } /* nothing is measured on one thread */
static inline int64_t thread_ns(void) { return 0; }

static inline int threads_given(int wanted) {
    (void)wanted;
    return 1;
}
static inline void threads_start(int threads) { (void)threads; }

static inline int call_in_child(void (*function)(void)) {
    (void)function; /* a child lacks no threads */
    return 0;
}

#else

#include <omp.h>
enum { HAS_OPENMP = 1 };
static inline int openmp_limit(void) { return omp_get_max_threads(); }

#ifdef _WIN32

static inline int threads_given(int wanted) { return wanted; }
static inline void threads_start(int threads) { (void)threads; }
static inline int64_t wall_ns(void) { return (int64_t)(omp_get_wtime() * 1e9); }
static inline int64_t thread_ns(void) { return wall_ns(); } /* its own clock ticks in 16 ms */

static inline int call_in_child(void (*function)(void)) {
    (void)function; /* no fork */
    return 0;
}

#else

#include <pthread.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t clock) {
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
/* (omp_get_wtime of LLVM's runtime is a clock that can be set.) */
static inline int64_t wall_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
/* The processor time of the calling thread. */
static inline int64_t thread_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static inline int call_in_child(void (*function)(void)) {
    return pthread_atfork(0, 0, function);
}

static void *pass_gate(void *gate) {
    pthread_mutex_lock((pthread_mutex_t *)gate);
    pthread_mutex_unlock((pthread_mutex_t *)gate);
    return 0;
}

/* What OpenMP keeps for this thread. It starts no more threads if a call needs no more than the
 * call before, and it ends those that are left over. */
static __thread int kept_threads = 1;
static inline void threads_start(int threads) { kept_threads = threads; }

/* Return how many threads, at most `wanted` and this one among them, can exist at once. */
static int threads_given(int wanted) {
    enum { MOST = 256 };
    pthread_t others[MOST];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int count = 0;
    if (wanted > MOST) wanted = MOST;
    if (wanted > kept_threads) {
        pthread_mutex_lock(&gate);
        while (count < wanted - 1 && pthread_create(&others[count], 0, pass_gate, &gate) == 0)
            count++;
        wanted = count + 1;
        pthread_mutex_unlock(&gate);
        while (count) pthread_join(others[--count], 0);
    }
    return wanted;
}

#endif /* _WIN32 */
#endif /* _OPENMP */
#endif
