/* Fences between the areas of a thread's scratch, for AddressSanitizer: it sees one block there. Nothing in other builds.
 *
 * Areas begin as 0x7f.., which is large in every type: what is read of them before it was written shows in a maximum.
 */
#ifndef FASTPOOL_FENCES_H
#define FASTPOOL_FENCES_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FASTPOOL_FENCED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FASTPOOL_FENCED 1
#endif

#ifdef FASTPOOL_FENCED
#include <sanitizer/asan_interface.h>
#include <string.h>
#define FENCE 1024
static inline void put_fences(char *area, size_t nbytes, const ptrdiff_t *offsets, int areas) {
    memset(area, 0x7f, nbytes);
    for (int i = 0; i < areas; i++) __asan_poison_memory_region(area + offsets[i] - FENCE, FENCE);
    __asan_poison_memory_region(area + nbytes - FENCE, FENCE);
}
static inline void take_fences_away(void *block, size_t nbytes) { __asan_unpoison_memory_region(block, nbytes); }
#else
#define FENCE 0
static inline void put_fences(char *area, size_t nbytes, const ptrdiff_t *offsets, int areas) {
    (void)area, (void)nbytes, (void)offsets, (void)areas;
}
static inline void take_fences_away(void *block, size_t nbytes) { (void)block, (void)nbytes; }
#endif

#endif
