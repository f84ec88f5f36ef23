# Choose the strategy of a pooling. Each file says what its strategy takes.

STRATEGY_NAMES = (                      # in the order of enum Strategy
    "bands", "down", "along", "apart", "padded", "whole", "flat", "taps", "far",
)


cdef Strategy choose_strategy(const Pool *p) noexcept nogil:
    """Return the best strategy that takes this pooling."""
    cdef const Problem *problem = &p.problem
    if p.fars:
        return RUNNING_MAXIMA
    if p.with_indices:
        return TAPS if p.direct or taps_fit(p) else BANDS
    if problem.channels_last:
        return BANDS
    if takes_whole_plane(problem):
        return WHOLE_PLANE
    if problem.rows.steps > 1 or problem.cols.steps > 1:
        return PADDED_PLANES if takes_padded_planes(p) else BANDS
    if flat_planes_pay(p):
        return FLAT_PLANES
    if takes_apart(p):
        return APART
    if takes_slide_down(p):
        return SLIDE_DOWN
    if takes_stride_two(p):
        return STRIDE_TWO
    return BANDS


cdef void plan_strategy(Pool *p) noexcept nogil:
    """Choose the strategy, and set its data."""
    p.strategy = choose_strategy(p)
    if p.strategy == TAPS:
        plan_taps(p)
    elif p.strategy == RUNNING_MAXIMA:
        plan_running_maxima(p)
    p.in_place = bands_in_place(p)
