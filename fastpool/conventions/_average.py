"""What the attributes of an average pooling mean in each convention.

The windows are those of a max pooling. What they are divided by, and what is refused, differs.
"""

from .._planning.average_pool import count
from .._planning.dtypes import ITEMSIZE, is_integer
from . import _maximum
from ._answers import named


def answers(asked):
    """Return the answers of ONNX, OpenVINO and torch, and one or two of TensorFlow."""
    onnx, openvino, torch, *tensorflow = _maximum.answers(asked)
    return [
        _onnx(asked, onnx),
        _openvino(asked, openvino),
        _torch(asked, torch),
        *(_tensorflow(asked, answer) for answer in tensorflow),
    ]


def _with(answer, call=(), notes=()):
    """Return an answer with more words in its call and more notes."""
    call = ", ".join([*filter(None, [answer.call]), *call])
    return answer._replace(call=call, notes=(*answer.notes, *notes))


def _refused(answer, problem):
    return answer._replace(output_shape=None, problem=problem, notes=(), windows=())


def _divided(answer, counts_beyond):
    """Yield what the windows that reach past the padding at the end are divided by."""
    for i, w in enumerate(answer.windows):
        last, places = w.output - 1, (-w.axis.begin, w.axis.size + w.end)
        declared = count(w.axis, places, last) if w.output else w.axis.kernel
        if declared < w.axis.kernel:
            taps = f"{'all' if counts_beyond else declared} of its {w.axis.kernel} taps"
            yield f"{named(answer.windows, i, last)} is divided by {taps}"


def _has_empty(answer):
    return any(w.empty for w in answer.windows)


def _onnx(asked, answer):
    notes = []
    if asked.count_include_pad:
        notes += _divided(answer, counts_beyond=False)
        notes += ["QLinearAveragePool of onnxruntime divides by all of them"] * bool(notes)
    if _has_empty(answer) and not any(note.startswith("onnxruntime ref") for note in answer.notes):
        notes.append("windows without elements: onnxruntime gives 0, onnx.reference NaN")
    if asked.ceil_mode and answer.windows:
        if asked.auto_pad != "NOTSET":
            notes.append("onnx.reference fails: auto_pad with ceil_mode")
        elif any(w.axis.end - w.end > 1 for w in answer.windows):
            notes.append("onnx.reference moves the windows towards the beginning")
    if _of_integers(asked):
        quantised = asked.dtype in ("uint8", "int8")
        notes.append(
            "no integers, but QLinearAveragePool rounds halves to even"
            if quantised
            else f"no {asked.dtype}"
        )
    return _with(answer, ["count_include_pad=1"] * asked.count_include_pad, notes)


def _openvino(asked, answer):
    exclude = not asked.count_include_pad
    call = [f'exclude-pad="{str(exclude).lower()}"']
    pads = asked.pads if asked.auto_pad == "NOTSET" else ()
    if exclude and any(p >= k for p, k in zip(pads, asked.extents * 2, strict=False)):
        return _with(_refused(answer, 'pads of a window\'s extent need exclude-pad="false"'), call)
    notes = [] if exclude else [*_divided(answer, counts_beyond=any(pads))]
    if _has_empty(answer):
        # Where only elements count, it divides by the size less the first element of the window.
        notes.append(
            f"windows without elements are {'0' if any(pads) and not exclude else 'NaN or 0'}"
        )
    if max(asked.dilations) > 1:
        notes.append("dilations need version 16")
    if _of_integers(asked):
        wide = ITEMSIZE[asked.dtype] > 2
        notes.append("rounds halves to even" + ", after sums that wrap in 32 bits" * wide)
    return _with(answer, call, notes)


def _torch(asked, answer):
    call = ["count_include_pad=False"] * (not asked.count_include_pad)
    if max(asked.dilations) > 1:
        return _with(_refused(answer, "no dilations"), call)
    notes = [*_divided(answer, counts_beyond=False)] if asked.count_include_pad else []
    if _of_integers(asked):
        rounds = "rounds toward zero, after sums that wrap in 64 bits"
        notes.append(rounds if asked.dtype == "int64" else f"no {asked.dtype}")
    return _with(answer, call, notes)


def _tensorflow(asked, answer):
    notes = []
    if _of_integers(asked):
        notes.append(f"no {asked.dtype}")
        if asked.dtype in ("uint8", "int8", "int16"):
            notes.append("TensorFlow Lite rounds halves away from zero")
    return _with(answer, ["no count_include_pad"] * asked.count_include_pad, notes)


def _of_integers(asked):
    return asked.dtype is not None and is_integer(asked.dtype)
