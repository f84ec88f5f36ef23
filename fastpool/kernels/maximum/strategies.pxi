# Set the data of the strategy that fastpool/_running/strategies.py chose.

STRATEGIES = {              # its names: the paths of BANDS differ in flags
    "running_maxima": RUNNING_MAXIMA, "whole_plane": WHOLE_PLANE, "padded_planes": PADDED_PLANES,
    "flat_planes": FLAT_PLANES, "apart": APART, "slide_down": SLIDE_DOWN, "stride_two": STRIDE_TWO,
    "pixels_as_row": BANDS, "direct_pixels": BANDS, "bands": BANDS, "taps": TAPS, "pairs": BANDS,
}

# What the strategies can take, for the tests of that module.
LIMITS = {
    "MAX_TAPS": MAX_TAPS, "SMALL_TAPS": SMALL_TAPS, "RING": RING, "FLAT_TAPS": FLAT_TAPS,
    "FLAT_MASKS": FLAT_MASKS,
}


cdef bint plan_strategy(Pool *p, strategy) except -1:
    """Set the strategy and its data."""
    p.strategy = STRATEGIES[strategy]
    if not VEC_MASKS and (p.strategy == SLIDE_DOWN or p.strategy == STRIDE_TWO
                          or p.strategy == FLAT_PLANES):
        raise ValueError(f"{strategy}: this build has no masks")
    p.pixels_as_row = strategy == "pixels_as_row"
    p.direct = strategy == "direct_pixels" or (p.strategy == TAPS and p.problem.channels_last)
    if p.strategy == TAPS:
        plan_taps(p)
    elif p.strategy == RUNNING_MAXIMA:
        plan_running_maxima(p)
    elif p.strategy == FLAT_PLANES and not plan_flat_planes(p):
        raise MemoryError("fastpool: no memory for masks")
    p.in_place = bands_in_place(p)
    return True
