/* The floating-point environment of a task: to nearest, no trap, nothing flushed to zero.
 *
 * The flags tell at no cost whether any sum of a tile was rounded. Between fp_clear and fp_inexact
 * there must be stores of all that was computed: compilers move arithmetic, but no stores, across
 * the asm statements below. If arithmetic sets no flags, as under valgrind, every sum counts as
 * rounded. */
#ifndef FASTPOOL_FLOAT_FLAGS_H
#define FASTPOOL_FLOAT_FLAGS_H

#include <stdint.h>

#if defined(__SSE2__)

typedef uint32_t fp_state;
#define FP_DEFAULT 0x1f80u /* all exceptions masked, to nearest, no flag */
INLINE uint32_t fp_read(void) {
    uint32_t state;
    __asm__ volatile("stmxcsr %0" : "=m"(state) : : "memory");
    return state;
}
INLINE void fp_write(uint32_t state) {
    __asm__ volatile("ldmxcsr %0" : : "m"(state) : "memory");
}
INLINE void fp_enter(fp_state *state) {
    *state = fp_read();
    fp_write(FP_DEFAULT);
}
INLINE void fp_leave(const fp_state *state) { fp_write(*state); }
INLINE int fp_is_usual(const fp_state *state) { return (*state & ~0x3fu) == FP_DEFAULT; }
INLINE void fp_enter_comparing(fp_state *state) {
    *state = fp_read();
    if (!fp_is_usual(state)) fp_write(FP_DEFAULT);
}
INLINE void fp_clear(void) { fp_write(FP_DEFAULT); }
INLINE int fp_inexact_flag(void) { return (fp_read() & 0x20) != 0; }
INLINE int fp_underflow_flag(void) { return (fp_read() & 0x10) != 0; }
INLINE int fp_invalid_flag(void) { return (fp_read() & 0x01) != 0; }

#elif defined(__aarch64__)

typedef struct {
    uint64_t control, status;
} fp_state;
INLINE void fp_clear(void) {
    __asm__ volatile("msr fpsr, %0" : : "r"((uint64_t)0) : "memory");
}
INLINE void fp_enter(fp_state *state) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(state->control) : : "memory");
    __asm__ volatile("mrs %0, fpsr" : "=r"(state->status) : : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    fp_clear();
}
INLINE void fp_leave(const fp_state *state) {
    __asm__ volatile("msr fpcr, %0" : : "r"(state->control) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(state->status) : "memory");
}
INLINE int fp_is_usual(const fp_state *state) { return state->control == 0; }
INLINE void fp_enter_comparing(fp_state *state) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(state->control) : : "memory");
    if (!fp_is_usual(state)) fp_enter(state);
}
INLINE uint64_t fp_status(void) {
    uint64_t status;
    __asm__ volatile("mrs %0, fpsr" : "=r"(status) : : "memory");
    return status;
}
INLINE int fp_inexact_flag(void) { return (fp_status() & 0x10) != 0; }
INLINE int fp_underflow_flag(void) { return (fp_status() & 0x08) != 0; }
INLINE int fp_invalid_flag(void) { return (fp_status() & 0x01) != 0; }

#else

#include <fenv.h>
typedef fenv_t fp_state;
#define FP_BARRIER __asm__ volatile("" : : : "memory")
INLINE void fp_enter(fp_state *state) {
    feholdexcept(state);
#ifdef FE_TONEAREST
    fesetround(FE_TONEAREST);
#endif
    FP_BARRIER;
}
INLINE void fp_leave(const fp_state *state) {
    FP_BARRIER;
    fesetenv(state);
}
INLINE int fp_is_usual(const fp_state *state) {
    (void)state;
    return 0; /* what fenv_t holds is unknown here */
}
INLINE void fp_enter_comparing(fp_state *state) { fp_enter(state); }
#if defined(FE_INEXACT) && defined(FE_UNDERFLOW) && defined(FE_INVALID)
INLINE void fp_clear(void) {
    FP_BARRIER;
    feclearexcept(FE_INEXACT | FE_UNDERFLOW | FE_INVALID);
    FP_BARRIER;
}
INLINE int fp_inexact_flag(void) {
    FP_BARRIER;
    return fetestexcept(FE_INEXACT) != 0;
}
INLINE int fp_underflow_flag(void) {
    FP_BARRIER;
    return fetestexcept(FE_UNDERFLOW) != 0;
}
INLINE int fp_invalid_flag(void) {
    FP_BARRIER;
    return fetestexcept(FE_INVALID) != 0;
}
#else
INLINE void fp_clear(void) {}
INLINE int fp_inexact_flag(void) { return 0; }
INLINE int fp_underflow_flag(void) { return 0; }
INLINE int fp_invalid_flag(void) { return 0; }
#endif

#endif

/* fp_enter_comparing begins and fp_leave_comparing ends a task that compares and adds nothing. The
 * state is written only if it is not the usual one, as writing it costs more than a tiny task. */
INLINE void fp_leave_comparing(const fp_state *state) {
    if (!fp_is_usual(state)) fp_leave(state);
}

static int fp_sets_flags; /* set as the module is loaded, before any call */
INLINE int fp_inexact(void) { return !fp_sets_flags || fp_inexact_flag(); }
INLINE int fp_underflow(void) { return !fp_sets_flags || fp_underflow_flag(); }
/* Was a result tiny, or infinity minus infinity, or infinity times 0? */
INLINE int fp_unsure(void) { return fp_underflow() || fp_invalid_flag(); }

/* Set fp_sets_flags: does arithmetic set flags? The state of the thread stays as it was. */
INLINE void fp_detect_flags(void) {
    volatile double one = 1, three = 3, least = 2.2250738585072014e-308, result;
    fp_state state;
    fp_enter(&state);
    fp_clear();
    result = one / three;
    result = least * least;
    result = (one / (one - one)) * (one - one);
    (void)result;
    fp_sets_flags = fp_inexact_flag() && fp_underflow_flag() && fp_invalid_flag();
    fp_leave(&state);
}

#endif
