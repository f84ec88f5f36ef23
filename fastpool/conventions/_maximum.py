"""What the attributes of a max pooling mean in each convention."""

from ._answers import Answer, dropped


def answers(asked):
    """Return the answers of ONNX, OpenVINO and torch, and one or two of TensorFlow."""
    return [_onnx(asked), _openvino(asked), _torch(asked), *_tensorflow(asked)]


def _onnx(asked):
    call = [f'auto_pad="{asked.auto_pad}"'] * (asked.auto_pad != "NOTSET")
    call += ["ceil_mode=1"] * asked.ceil_mode
    answer = asked.answer("ONNX", ", ".join(call))
    notes = list(_onnxruntime(asked, answer))
    if asked.ceil_mode and any(w.dropped for w in answer.windows):
        notes.append(f"texts before opset 22 keep {dropped(answer.windows)}")
    return answer._replace(notes=tuple(notes))


def _onnxruntime(asked, answer):
    """Yield notes on what onnxruntime does differently."""
    axes = list(zip(asked.sizes, asked.kernel, asked.strides, asked.extents, strict=True))
    if any(p >= k for p, k in zip(asked.pads, asked.kernel * 2, strict=True)):
        yield "onnxruntime refuses pads of the kernel's extent"
        return
    if asked.auto_pad != "NOTSET" and any(asked.pads):
        yield "onnxruntime ignores the pads"
    elif not answer.windows:
        count = len(axes)
        rooms = [n + sum(asked.pads[i::count]) - e for i, (n, _, _, e) in enumerate(axes)]
        fitting = [
            r // s if r >= 0 else -(-r // s) for r, s in zip(rooms, asked.strides, strict=True)
        ]
        if min(fitting) >= -1:
            yield "onnxruntime makes windows that do not fit, or an empty result"
    if asked.same and asked.extents != list(asked.kernel):
        yield "onnxruntime pads as if not dilated: other windows, or an error"
    elif asked.same and any((-(-n // s) - 1) * s + k < n for n, k, s, _ in axes):
        yield "onnxruntime pads by less than nothing: other windows, or an error"


def _openvino(asked):
    pads, call, notes = asked.pads, [], []
    if asked.auto_pad != "NOTSET":
        call.append(f'auto_pad="{asked.auto_pad.lower()}"')
        if any(pads):
            pads = (0,) * len(pads)
            notes.append("the pads are ignored")
    call += ['rounding_type="ceil"'] * asked.ceil_mode
    call = ", ".join(call)
    answer = asked.answer("OpenVINO", call, pads=pads, ceil_rule="keep")
    if any(not w.fitting for w in answer.windows):  # it refuses what rounding down would refuse
        return asked.answer("OpenVINO", call, notes, pads=pads, ceil_mode=False)
    if asked.ceil_mode and asked.same:
        axes = [w.axis for w in answer.windows]
        rooms = [a.size + a.begin + a.end - e for a, e in zip(axes, asked.extents, strict=True)]
        found = tuple(-(-r // s) + 1 for r, s in zip(rooms, asked.strides, strict=True))
        if found != answer.output_shape:
            notes.append(f"OpenVINO 2026.4 gives {found}, with windows of nothing")
    elif asked.ceil_mode:
        lost = dropped(asked.answer("", "", pads=pads, ceil_rule="clip").windows)
        if lost:
            notes.append(f'"ceil_torch", of version 14, drops {lost}')
    return answer._replace(notes=tuple(notes))


def _torch(asked):
    count = len(asked.sizes)
    begins, ends = asked.pads[:count], asked.pads[count:]
    if asked.auto_pad == "VALID":
        begins = ends = (0,) * count
    call = [f"padding={begins}"] * any(begins)
    call = ", ".join(call + ["ceil_mode=True"] * asked.ceil_mode)

    def refused(problem):
        return Answer("torch", call, None, problem)

    if asked.auto_pad.startswith("SAME"):
        return refused("no automatic padding")
    if begins != ends:
        return refused("one padding for both sides of an axis")
    if any(2 * p > k for p, k in zip(begins, asked.kernel, strict=True)):
        return refused("padding of at most half the kernel")
    return asked.answer("torch", call, pads=begins + ends, auto_pad="NOTSET")


def _tensorflow(asked):
    lacks = ["pads"] * any(asked.pads) + ["ceil_mode"] * asked.ceil_mode
    call = ", ".join(f"no {name}" for name in lacks)
    changed = {"pads": (0,) * len(asked.pads), "ceil_mode": False}
    if asked.auto_pad in ("NOTSET", "VALID"):
        yield asked.answer('TensorFlow "VALID"', call, **changed, auto_pad="VALID")
    if asked.auto_pad != "VALID":
        notes = ["no SAME_LOWER: the odd unit of padding is at the end"]
        notes = notes if asked.auto_pad == "SAME_LOWER" else []
        yield asked.answer('TensorFlow "SAME"', call, notes, **changed, auto_pad="SAME_UPPER")
