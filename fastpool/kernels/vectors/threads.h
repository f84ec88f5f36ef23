/* How many threads the system gives, and what is called in a child made by fork.
 *
 * OpenMP's runtime of gcc ends the process where it cannot start a thread, as under a limit of processes or of address
 * space, so threads are asked for before it is. */
#ifndef FASTPOOL_THREADS_H
#define FASTPOOL_THREADS_H

#ifdef _WIN32

static inline int threads_given(int wanted)
{
    return wanted;
}

static inline int call_in_child(void (*function)(void))
{
    (void)function; /* no fork */
    return 0;
}

#else

#include <pthread.h>

static inline int call_in_child(void (*function)(void))
{
    return pthread_atfork(0, 0, function);
}

static void *pass_gate(void *gate)
{
    pthread_mutex_lock((pthread_mutex_t *)gate);
    pthread_mutex_unlock((pthread_mutex_t *)gate);
    return 0;
}

/* At most `wanted` threads, this one among them, that could all be there at once. */
static int threads_given(int wanted)
{
    /* What OpenMP keeps for this thread: it starts no more where a call needs no more than the one before, and ends what that leaves. */
    static __thread int kept = 1;
    enum { MOST = 256 };
    pthread_t others[MOST];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int count = 0;
    if (wanted > MOST)
        wanted = MOST;
    if (wanted > kept) {
        pthread_mutex_lock(&gate);
        while (count < wanted - 1 && pthread_create(&others[count], 0, pass_gate, &gate) == 0)
            count++;
        wanted = count + 1;
        pthread_mutex_unlock(&gate);
        while (count)
            pthread_join(others[--count], 0);
    }
    kept = wanted;
    return wanted;
}

#endif
#endif
