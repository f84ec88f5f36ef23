"""Name the argument or function that is meant, if a caller uses the word of another library.

Each function of `fastpool` takes unknown words in ``**unknown``, and too many arguments without a
word in ``*more``. Its signature shows neither. Its first statement is ``if unknown or more: raise
unexpected(function, unknown, more)``. Python's own TypeError would not say which argument is meant,
and Python has no hook for its text.
"""

from itertools import islice
from types import FunctionType

from .values import shown

# The word of another library -> what it may be called here. A function has at most one of these.
_MEANT = {
    # torch
    "kernel_size": ("kernel_shape", "block_size"),
    "stride": ("strides",),
    "padding": ("pads",),
    "dilation": ("dilations",),
    "divisor_override": ("divisor",),
    "norm_type": ("p",),
    "keepdim": ("keepdims",),
    # Keras, TensorFlow, JAX, Flax
    "pool_size": ("kernel_shape", "output_size"),
    **dict.fromkeys(("ksize", "window_shape", "window_dimensions"), ("kernel_shape",)),
    "window_strides": ("strides",),
    **dict.fromkeys(("dilation_rate", "window_dilation"), ("dilations",)),
    "data_format": ("layout",),
    # SciPy, scikit-image, NumPy
    "size": ("kernel_shape", "output_size", "block_size"),
    "block_size": ("kernel_shape",),
    **dict.fromkeys(("axis", "axes"), ("layout",)),
    "output": ("out",),
    "mode": ("border",),
    "cval": ("border_value",),
    "mask": ("where",),
    **dict.fromkeys(("fill_value", "missing_value", "background", "ignore"), ("nodata",)),
    "skipna": ("nan",),
    # OpenVINO
    "kernel": ("kernel_shape",),
    "rounding_type": ("ceil_mode",),
    "index_element_type": ("index_dtype",),
    # fastpool's own words, in the functions that have another one
    "kernel_shape": ("output_size", "block_size"),
    "output_size": ("output_shape",),
    "result_dtype": ("dtype",),
}

# What to know about an argument that is no other name of the same thing.
_REMARKS = {
    ("axis", "layout"): ', which names all axes, like "HWC": D, H and W are pooled',
    ("axes", "layout"): ', which names all axes, like "HWC": D, H and W are pooled',
    ("mask", "where"): ", which is True where an element is taken",
    ("padding", "auto_pad"): ', "VALID", "SAME_UPPER" or "SAME_LOWER"',
}
# Words that mean nothing here, and why.
_MEANINGLESS = {"origin": "origin has no counterpart: pads move the windows"}

# The function of another library -> the one of fastpool.
_FUNCTIONS = {
    **dict.fromkeys(("average_pool", "avgpool", "mean_pool", "uniform_filter"), "avg_pool"),
    **dict.fromkeys(("sum_pool", "moving_average", "blur"), "avg_pool"),
    **dict.fromkeys(("minpool", "minimum_filter", "amin", "minimum"), "min_pool"),
    **dict.fromkeys(("grey_erosion", "erosion", "erode"), "min_pool"),
    **dict.fromkeys(("maxpool", "maximum_filter", "amax", "maximum"), "max_pool"),
    **dict.fromkeys(("grey_dilation", "dilation", "dilate"), "max_pool"),
    **dict.fromkeys(("maxunpool", "unpool", "min_unpool"), "max_unpool"),
    **dict.fromkeys(("coarsen", "downscale_local_mean", "downsample"), "block_reduce"),
    **dict.fromkeys(("median_pool", "mode_pool", "resize"), "block_reduce"),
    "adaptive_pool": "adaptive_max_pool",
}

_TAKES_MORE = 0x04 | 0x08  # inspect.CO_VARARGS and CO_VARKEYWORDS
_MOST_HINTS = 8  # in one error


class _Nothing:
    """What a required argument is if the caller has given none."""

    def __repr__(self):
        return "nothing"


def explicit(function):
    """Hide ``*more`` and ``**unknown``, and let the body see calls without a window.

    Otherwise ``max_pool(x, kernel_size=2)`` would be refused for lack of kernel_shape, by an error
    that does not say what kernel_size is.
    """
    # Nothing calls `__wrapped__`: its code reads `more` and `unknown`, which it does not have.
    # inspect.signature reads it. (20 Signatures take 0.4 ms of an import, and 20 of these 0.02.)
    code = function.__code__
    code = code.replace(co_flags=code.co_flags & ~_TAKES_MORE)
    visible = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    visible.__kwdefaults__ = function.__kwdefaults__
    visible.__qualname__ = function.__qualname__
    function.__wrapped__ = visible
    optional = function.__defaults__ or ()
    required = function.__code__.co_argcount - len(optional)
    if function.__code__.co_varnames[required - 1] in ("kernel_shape", "output_size"):
        function.__defaults__ = (_Nothing(), *optional)
    return function


def unexpected(function, unknown, more=(), others=()):
    """Return the TypeError for a call with unknown keywords or too many arguments without one."""
    code = function.__code__
    names = (*words_of(function), *others)  # (others are in ``**attributes``)
    if more:
        count, keyword = code.co_argcount, names[code.co_argcount]
        windowless = "global" in function.__name__ and not isinstance(more[0], str)
        advice = "there is no window" if windowless else f"write {keyword}={shown(more[0])}"
        return TypeError(
            f"{function.__name__}() takes {count} argument{'s' * (count > 1)} without a keyword, "
            f"got {count + len(more)}; {advice}"
        )
    # (of a few: looking for close names takes long, and there may be any number of words)
    some = islice(unknown.items(), _MOST_HINTS)
    hints = [hint for word, value in some if (hint := _hint(word, value, names))]
    hints = "; ".join(hints) or f"expected {', '.join(names)}"
    first = shown(next(iter(unknown)))
    return TypeError(f"{function.__name__}() got an unexpected keyword argument {first}; {hints}")


def refuse_unknown(function, plan_of, attributes, given):
    """Raise TypeError unless `attributes` are words of `plan_of` that are not `given` already."""
    others = [word for word in words_of(plan_of)[2:] if word not in given]
    unknown = {word: value for word, value in attributes.items() if word not in others}
    if unknown:
        raise unexpected(function, unknown, others=others)


def words_of(function):
    """Return the names of a function's arguments."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def meant_by(name, names):
    """Return a hint at which of the public `names` an unknown one means, or ""."""
    if name.startswith("_") or len(name) > 100:
        return ""
    plain = name.lower()
    if plain[-2:] in ("1d", "2d", "3d"):
        plain = plain[:-2].rstrip("_")
    meant = _FUNCTIONS.get(plain) or _closest(plain, names, 0.8)
    return f"; write fastpool.{meant}" if meant else ""


def _hint(word, value, names):
    """Return what to write for an unknown word, or "" if that is not known."""
    meant = [name for name in _MEANT.get(word, ()) if name in names]
    if word == "padding" and isinstance(value, str) and "auto_pad" in names:
        meant = ["auto_pad"]  # Keras: "same" or "valid"
    if word == "result_dtype" and "input_shape" in names:
        meant = []  # (where `dtype` is the type of the array)
    if meant:
        return f"write {meant[0]} for {word}{_REMARKS.get((word, meant[0]), '')}"
    if word in _MEANT or word in _MEANINGLESS:
        return _MEANINGLESS.get(word, "")
    close = _closest(word[:100], names, 0.75)
    return f"write {close} for {word}" if close else ""


def _closest(word, names, cutoff):
    """Return the name that a misspelt word is most like, or None."""
    from difflib import get_close_matches  # here, so that importing fastpool stays fast

    return next(iter(get_close_matches(word, names, 1, cutoff)), None)
