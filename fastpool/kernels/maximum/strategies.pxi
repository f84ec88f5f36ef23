# Choose the strategy of a pooling.

CODES = {"float16": F16, "bfloat16": BF16, "float32": F32, "float64": F64, "int8": I8, "int16": I16, "int32": I32, "int64": I64,
         "uint8": U8, "uint16": U16, "uint32": U32, "uint64": U64, "bool": BOOL}


STRATEGY_NAMES = "bands", "down", "along", "apart", "padded", "whole", "flat", "taps", "far"     # as in enum Strategy


cdef Strategy choose_strategy(Pool *p) noexcept nogil:
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Strategy strategy = BANDS
    if p.fars:
        return RUNNING_MAXIMA
    if p.with_indices:
        return TAPS if p.direct or taps_fit(p) else BANDS
    if p.channels_last:
        return BANDS
    if rows.out * cols.out == 1 and rows.kernel == rows.size and cols.kernel == cols.size and rows.inner_hi * cols.inner_hi == 1:
        if rows.size * cols.size * p.size <= WHOLE_BYTES:       # (a plane with a NaN is copied)
            return WHOLE_PLANE
    if rows.steps > 1 or cols.steps > 1:
        if rows.stride * cols.stride == 1 and p.row_tiles * p.col_tiles == 1 and cols.out * p.size < 2 * VEC_BYTES:
            if padded_plane(rows, cols) <= PADDED_PARTS * rows.out * cols.out:
                return PADDED_PLANES
        return BANDS
    if cols.kernel == cols.stride and cols.dilation == 1 and cols.inner_hi - cols.inner_lo == cols.out:
        # (the last tile is the narrowest)
        if (cols.kernel == 2 or cols.kernel == 4) and (cols.out - (p.col_tiles - 1) * p.tile_cols) * p.size >= VEC_BYTES:
            strategy = APART
    if not VEC_MASKS:
        return strategy
    if cols.stride == 1:
        # Vectors go down a few neighbouring columns; wider rows would come from memory in small pieces.
        if rows.stride == 1 and imax(rows.kernel, cols.kernel) <= SMALL_TAPS and p.tile_cols * p.size <= 8 * VEC_BYTES:
            strategy = SLIDE_DOWN if tracks_every_nan(p) else BANDS
    elif strategy == BANDS and cols.stride == 2 and cols.dilation == 1 and 2 <= cols.kernel <= 3 and cols.begin < cols.kernel:
        if 2 * (cols.out - 1) - cols.begin < cols.size:
            strategy = STRIDE_TWO
    return FLAT_PLANES if flat_planes_pay(p, strategy) else strategy


cdef bint taps_fit(Pool *p) noexcept nogil:
    """Channels first, with indices: can all taps be taken in registers, and is that faster than passes?"""
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t slabs = 1, i, first
    cdef int64_t furthest = (rows.kernel - 1) * rows.dilation * p.index_row + (cols.kernel - 1) * cols.dilation * p.index_col
    if p.channels_last:
        return False
    for i in range(p.leads):
        slabs *= p.lead[i].kernel
        furthest += (p.lead[i].kernel - 1) * p.lead[i].dilation * p.index_lead[i]
        if slabs > MAX_TAPS:
            return False
    if furthest >> (8 * p.key_bytes - 1):
        return False
    if cols.stride == 4:
        if cols.kernel != 4 or cols.dilation > 1:
            return False
    elif cols.stride > 2 or (cols.stride == 2 and (cols.kernel == 1 or cols.dilation > 1)):
        return False
    # (three rows at stride 2 are compared again sooner than they are kept)
    p.slides = slabs == 1 and cols.stride <= 2 and rows.kernel > rows.stride
    p.slides = p.slides and (rows.stride == 1 or (rows.dilation == 1 and rows.kernel > 3))
    if p.slides:
        if rows.extent > RING or imax(rows.kernel, cols.kernel) > (2 * TAPS_ALONG if VEC_MASKS else TAPS_ALONG):
            return False
    elif slabs * rows.kernel * cols.kernel > TAPS_AT_ONCE:
        return False
    # Windows that share nothing read everything once, from memory: a look for NaN before would cost a fifth.
    p.tracks_nan = not p.slides and (cols.stride == 4 or (slabs == 1 and cols.stride == cols.kernel == rows.kernel == 2))
    p.slides_square = p.slides and rows.stride * cols.stride == 1 and rows.kernel == cols.kernel and none_empty(rows)
    p.slides_square = p.slides_square and (rows.kernel == 3 or rows.kernel == 5)
    return none_empty(cols)
