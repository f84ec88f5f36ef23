/* Redzones between the areas of a thread's scratch, for AddressSanitizer, which sees one block
 * there.
 *
 * Only builds with AddressSanitizer have them. There, areas begin as bytes of 0x7f, which is large
 * in every type: an element that is read before it was written shows in a maximum.
 */
#ifndef FASTPOOL_REDZONES_H
#define FASTPOOL_REDZONES_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FASTPOOL_REDZONES 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FASTPOOL_REDZONES 1
#endif

#ifdef FASTPOOL_REDZONES
#include <sanitizer/asan_interface.h>
#include <string.h>
#define REDZONE 1024
static inline void poison_redzones(char *area, size_t nbytes, const ptrdiff_t *offsets, int areas) {
    memset(area, 0x7f, nbytes);
    for (int i = 0; i < areas; i++)
        __asan_poison_memory_region(area + offsets[i] - REDZONE, REDZONE);
    __asan_poison_memory_region(area + nbytes - REDZONE, REDZONE);
}
static inline void unpoison_redzones(void *block, size_t nbytes) {
    __asan_unpoison_memory_region(block, nbytes);
}
#else
#define REDZONE 0
static inline void poison_redzones(char *area, size_t nbytes, const ptrdiff_t *offsets, int areas) {
    (void)area, (void)nbytes, (void)offsets, (void)areas;
}
static inline void unpoison_redzones(void *block, size_t nbytes) { (void)block, (void)nbytes; }
#endif

#endif
