/* Features of the processor, by the names that setup.py gives to the compiler. */
#ifndef FASTPOOL_CPU_H
#define FASTPOOL_CPU_H

#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

/* Return 1 if the processor and the operating system have `feature`, else 0. Only the baseline
 * build calls this, before another build is loaded. */
static inline int cpu_has(const char *feature) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (!strcmp(feature, "avx2")) return __builtin_cpu_supports("avx2") != 0;
    if (!strcmp(feature, "bmi2")) return __builtin_cpu_supports("bmi2") != 0;
    if (!strcmp(feature, "f16c")) { /* (which not every compiler's cpu_supports knows) */
        unsigned a, b, c, d;
        return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
    }
    if (!strcmp(feature, "fma")) return __builtin_cpu_supports("fma") != 0;
    if (!strcmp(feature, "avx512f")) return __builtin_cpu_supports("avx512f") != 0;
    if (!strcmp(feature, "avx512bw")) return __builtin_cpu_supports("avx512bw") != 0;
    if (!strcmp(feature, "avx512dq")) return __builtin_cpu_supports("avx512dq") != 0;
    if (!strcmp(feature, "avx512vl")) return __builtin_cpu_supports("avx512vl") != 0;
#endif
    (void)feature;
    return 0;
}

#endif
