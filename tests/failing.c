/* A malloc that fails when told to, put before the C library's own (LD_PRELOAD). glibc only.
   It never fails OpenMP's runtime, libgomp, which would end the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);

static size_t least = -1;               /* smaller blocks never fail, and are not counted */
static long left, failed, blocks;

static int fails(size_t size, void *caller) {
    Dl_info library;
    if (!left || size < least)
        return 0;
    if (dladdr(caller, &library) && strstr(library.dli_fname, "libgomp"))
        return 0;
    if (__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST))
        return 0;
    failed = 1;
    errno = ENOMEM;
    return 1;
}

static void *counted(void *block, long by) {
    if (block && malloc_usable_size(block) >= least)
        __atomic_add_fetch(&blocks, by, __ATOMIC_SEQ_CST);
    return block;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size) {
    return fails(size, CALLER) ? NULL : counted(__libc_malloc(size), 1);
}

void *calloc(size_t count, size_t size) {
    return fails(count * size, CALLER) ? NULL : counted(__libc_calloc(count, size), 1);
}

void *realloc(void *block, size_t size) {
    void *moved;
    if (fails(size, CALLER))
        return NULL;
    counted(block, -1);
    moved = __libc_realloc(block, size);
    counted(moved ? moved : size ? block : NULL, 1);
    return moved;
}

void free(void *block) { __libc_free(counted(block, -1)); }

void watch(size_t size) { least = size; blocks = 0; }
long watched(void) { return blocks; }
/* The n-th block from now on is refused; `disarm` says whether it came to that. */
void arm(long n) { left = n; failed = 0; }
long disarm(void) { left = 0; return failed; }
