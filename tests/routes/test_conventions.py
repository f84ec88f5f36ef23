"""fastpool.conventions gives what the libraries give that it describes, if they are installed."""

import random
import re

import numpy as np
import pytest

import cases
from fastpool import conventions

NAMES = ["ONNX", "OpenVINO", "torch", 'TensorFlow "VALID"', 'TensorFlow "SAME"']


def questions(seed, count):
    """Random attributes of one or two axes, half of them with a sort of padding of their own."""
    rng = random.Random(seed)
    for _ in range(count):
        rank = rng.choice((1, 1, 2))
        begins = [rng.choice((0, 0, 1, 2, 4)) for _ in range(rank)]
        ends = begins if rng.random() < 0.5 else [rng.randint(0, 4) for _ in range(rank)]
        yield {
            "sizes": [rng.randint(1, 9) for _ in range(rank)],
            "kernel_shape": [rng.randint(1, 4) for _ in range(rank)],
            "strides": [rng.randint(1, 5) for _ in range(rank)],
            "pads": begins + ends,
            "dilations": [rng.choice((1, 1, 1, 2, 3))] * rank,
            "auto_pad": rng.choice(["NOTSET"] * 4 + ["VALID", "SAME_UPPER", "SAME_LOWER"]),
            "ceil_mode": rng.random() < 0.5,
        }


def answer(question, name):
    answers = {a.name: a for a in conventions.compare(**question).answers}
    return answers.get(name)


def test_torch():
    torch = pytest.importorskip("torch")
    errors = answers = 0
    for question in questions(1, 700):
        own = answer(question, "torch")
        rank = len(question["sizes"])
        begins, ends = question["pads"][:rank], question["pads"][rank:]
        if question["auto_pad"].startswith("SAME"):
            assert own.problem == "no automatic padding"
            continue
        if question["auto_pad"] == "VALID":
            begins = ends = [0] * rank
        if begins != ends:
            assert own.problem == "one padding for both sides of an axis"
            continue
        pool = (torch.nn.functional.max_pool1d, torch.nn.functional.max_pool2d)[rank - 1]
        window = question["kernel_shape"], question["strides"], begins, question["dilations"]
        try:
            y = pool(torch.zeros(1, 1, *question["sizes"]), *window, question["ceil_mode"])
        except RuntimeError:
            assert own.output_shape is None, question
            errors += 1
        else:
            assert own.output_shape == tuple(y.shape[2:]), question
            answers += 1
    assert min(errors, answers) > 30


def test_openvino():
    opset = pytest.importorskip("openvino.opset8")
    more = errors = 0
    for question in questions(2, 700):
        own = answer(question, "OpenVINO")
        rank = len(question["sizes"])
        x = opset.parameter([1, 1, *question["sizes"]], np.float32)
        auto_pad = {"NOTSET": "explicit"}.get(question["auto_pad"], question["auto_pad"].lower())
        try:
            node = opset.max_pool(
                x,
                question["strides"],
                question["dilations"],
                question["pads"][:rank],
                question["pads"][rank:],
                question["kernel_shape"],
                "ceil" if question["ceil_mode"] else "floor",
                auto_pad,
            )
        except RuntimeError:
            assert own.output_shape is None, question
            errors += 1
            continue
        expected = own.output_shape
        for note in own.notes:
            if said := re.match(r"OpenVINO 2026.4 gives \(([^)]*)\)", note):
                expected = tuple(int(n) for n in said[1].split(",") if n)
                more += 1
        assert tuple(node.output(0).shape)[2:] == expected, question
    assert errors > 20 and more > 5


def test_onnxruntime():
    onnxruntime = pytest.importorskip("onnxruntime")
    helper = pytest.importorskip("onnx.helper")
    onnxruntime.set_default_logger_severity(4)
    seen = dict.fromkeys(("refuses", "ignores", "makes", "pads", ""), 0)

    def extents(sizes, kernel_shape, pads, auto_pad, ceil_mode, **attributes):
        attributes |= {"kernel_shape": kernel_shape, "ceil_mode": int(ceil_mode)}
        attributes |= {"pads": pads, "auto_pad": auto_pad}
        node = helper.make_node("MaxPool", ["x"], ["y"], **attributes)
        shape = [1, 1, *sizes]
        values = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", shape), ("y", None))]
        graph = helper.make_graph([node], "pool", values[:1], values[1:])
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 12)])
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
            return session.run(None, {"x": np.zeros(shape, np.float32)})[0].shape[2:]
        except Exception:  # its own kinds, which have no common base
            return None

    for question in questions(3, 500):
        own, found = answer(question, "ONNX"), extents(**question)
        said = [n.split()[1] for n in own.notes if n.startswith("onnxruntime ")]
        for word in said or [""]:
            seen[word] += 1
        if "refuses" in said:
            assert found is None, question
        elif "pads" in said:
            pass  # other windows: often as many as there should be
        elif "ignores" in said:
            assert own.output_shape is None
            plain = answer({**question, "pads": 0}, "ONNX")
            assert found == plain.output_shape or not plain.output_shape, question
        elif "makes" in said:
            assert own.output_shape is None and found is not None, question
        else:
            assert found == own.output_shape, question
    assert min(seen.values()) > 5, seen


def test_tensorflow():
    """Against its two formulas, there being no TensorFlow here."""
    for question in questions(4, 300):
        asked = conventions.compare(**question).answers[3:]
        valid = [a for a in asked if a.name == NAMES[3]]
        same = [a for a in asked if a.name == NAMES[4]]
        assert bool(valid) == (question["auto_pad"] in ("NOTSET", "VALID"))
        assert bool(same) == (question["auto_pad"] != "VALID")
        axes = [question[n] for n in ("sizes", "kernel_shape", "strides", "dilations")]
        axes = list(zip(*axes, strict=True))
        for a in same:
            assert a.output_shape == tuple(-(-n // s) for n, _, s, _ in axes)
        for a in valid:
            extents = tuple(-(-(n - (k - 1) * d) // s) for n, k, s, d in axes)
            assert a.output_shape == (extents if min(extents) > 0 else None)


# ---------------------------------------------------------------------------------------- averages


def averages(seed, count):
    """Questions about averages over one axis, by what the answers say about windows of ones.

    The means of ones are the elements of each window, divided by what it is divided by.
    """
    rng = random.Random(seed)
    for question in questions(seed, count):
        for name in ("sizes", "kernel_shape", "strides", "dilations"):
            question[name] = question[name][:1]
        pads = question["pads"]
        question["pads"] = [pads[0], pads[len(pads) // 2]]
        yield {**question, "op": "average", "count_include_pad": rng.random() < 0.7}


def means_of_ones(own, question, empty):
    """What the notes of an answer say that the means of ones are."""
    assert own.windows, (own, question)
    (w,) = own.windows
    (size,), (kernel,), (dilation,) = (question[n] for n in ("sizes", "kernel_shape", "dilations"))
    means = []
    for o in range(w.output):
        taps = [w.first(o) + t * dilation for t in range(kernel)]
        real = sum(0 <= tap < size for tap in taps)
        divisor = kernel if question["count_include_pad"] else real
        for note in own.notes:
            if said := re.match(rf"window {o} is divided by (all|\d+) of its {kernel} taps", note):
                divisor = kernel if said[1] == "all" else int(said[1])
        means.append(np.float32(real) / np.float32(divisor) if real else empty)
    return np.array(means, np.float32)


def test_means_of_torch():
    torch = pytest.importorskip("torch")
    told = errors = 0
    for question in averages(6, 700):
        own = answer(question, "torch")
        begin, end = question["pads"] if question["auto_pad"] != "VALID" else (0, 0)
        if question["auto_pad"].startswith("SAME") or begin != end:
            assert own.output_shape is None
            continue
        if question["dilations"] != [1]:
            assert own.problem == "no dilations" or own.output_shape is None
            continue
        attributes = [question[n][0] for n in ("kernel_shape", "strides")]
        attributes += [begin, question["ceil_mode"], question["count_include_pad"]]
        try:
            y = torch.nn.functional.avg_pool1d(torch.ones(1, 1, *question["sizes"]), *attributes)
        except RuntimeError:
            assert own.output_shape is None, question
            errors += 1
            continue
        expected = means_of_ones(own, question, None)
        np.testing.assert_array_equal(y.numpy()[0, 0], expected, err_msg=str(question))
        told += any("is divided by" in note for note in own.notes)
    assert told > 5 and errors > 20


def test_means_of_openvino():
    openvino = pytest.importorskip("openvino")
    opset = pytest.importorskip("openvino.opset16")
    core = openvino.Core()
    seen = dict.fromkeys(("all", "part", "nan", "error", "more"), 0)
    for question in averages(7, 150):
        own = answer(question, "OpenVINO")
        x = opset.parameter([1, 1, *question["sizes"]], np.float32)
        begin, end = question["pads"]
        auto_pad = {"NOTSET": "explicit"}.get(question["auto_pad"], question["auto_pad"].lower())
        try:
            node = opset.avg_pool(
                x,
                strides=question["strides"],
                dilations=question["dilations"],
                pads_begin=[begin],
                pads_end=[end],
                kernel_shape=question["kernel_shape"],
                exclude_pad=not question["count_include_pad"],
                rounding_type="ceil" if question["ceil_mode"] else "floor",
                auto_pad=auto_pad,
            )
            compiled = core.compile_model(openvino.Model([node], [x]), "CPU")
            y = compiled([np.ones((1, 1, *question["sizes"]), np.float32)])[0][0, 0]
        except RuntimeError:
            assert own.output_shape is None, question
            seen["error"] += 1
            continue
        if any(note.startswith("OpenVINO 2026.4 gives") for note in own.notes):
            seen["more"] += 1
            continue
        odd = "windows without elements are NaN or 0" in own.notes
        expected = means_of_ones(own, question, np.nan if odd else 0)
        y = np.where(np.isnan(expected) & (y == 0), np.nan, y)
        np.testing.assert_array_equal(y, expected, err_msg=str(question))
        seen["all"] += any("divided by all" in note for note in own.notes)
        seen["part"] += any(re.search(r"divided by \d", note) for note in own.notes)
        seen["nan"] += odd
    assert min(seen.values()) > 0, seen


def test_means_of_onnxruntime():
    onnxruntime = pytest.importorskip("onnxruntime")
    helper = pytest.importorskip("onnx.helper")
    onnxruntime.set_default_logger_severity(4)
    told = refused = 0
    for question in averages(8, 400):
        own = answer(question, "ONNX")
        attributes = {n: question[n] for n in ("kernel_shape", "strides", "dilations", "auto_pad")}
        attributes |= {n: int(question[n]) for n in ("ceil_mode", "count_include_pad")}
        if question["auto_pad"] == "NOTSET":
            attributes["pads"] = question["pads"]
        elif any(question["pads"]):
            assert own.output_shape is None
            continue
        node = helper.make_node("AveragePool", ["x"], ["y"], **attributes)
        x = np.ones((1, 1, *question["sizes"]), np.float32)
        values = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", x.shape), ("y", None))]
        graph = helper.make_graph([node], "pool", values[:1], values[1:])
        opset = helper.make_opsetid("", 19)
        model = helper.make_model(graph, ir_version=9, opset_imports=[opset])
        said = [note.split()[1] for note in own.notes if note.startswith("onnxruntime ")]
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
            y = session.run(None, {"x": x})[0][0, 0]
        except Exception:  # its own kinds, which have no common base
            assert own.output_shape is None or said, question
            refused += 1
            continue
        if said:
            continue
        expected = means_of_ones(own, question, 0)
        np.testing.assert_array_equal(y, expected, err_msg=str(question))
        told += any("is divided by" in note for note in own.notes)
    assert told > 5 and refused > 5


def test_averages_of_all_four():
    attributes = {"strides": 2, "pads": 1, "ceil_mode": True, "count_include_pad": True}
    comparison = conventions.compare(4, 3, op="average", **attributes, dtype="uint8")
    assert [a.name for a in comparison.answers] == NAMES
    assert str(comparison).splitlines()[1:] == [
        "ONNX                (3,)  ceil_mode=1, count_include_pad=1",
        "                          window 2 is divided by 2 of its 3 taps",
        "                          QLinearAveragePool of onnxruntime divides by all of them",
        "                          no integers, but QLinearAveragePool rounds halves to even",
        'OpenVINO            (3,)  rounding_type="ceil", exclude-pad="false"',
        "                          window 2 is divided by all of its 3 taps",
        "                          rounds halves to even",
        "torch               (3,)  padding=(1,), ceil_mode=True",
        "                          window 2 is divided by 2 of its 3 taps",
        "                          no uint8",
        'TensorFlow "VALID"  (1,)  no pads, no ceil_mode, no count_include_pad',
        "                          no uint8",
        "                          TensorFlow Lite rounds halves away from zero",
        'TensorFlow "SAME"   (2,)  no pads, no ceil_mode, no count_include_pad',
        "                          no uint8",
        "                          TensorFlow Lite rounds halves away from zero",
    ]


def test_what_has_no_meaning_for_maxima():
    for attributes, match in (
        ({"count_include_pad": True}, '^count_include_pad: has no meaning with op "max"'),
        ({"dtype": "uint8"}, '^dtype: has no meaning with op "max"'),
        ({"op": "mean"}, "^op: expected one of"),
        ({"op": "average", "count_include_pad": 2}, "^count_include_pad: expected 0 or 1"),
    ):
        with pytest.raises(ValueError, match=match):
            conventions.compare(5, 2, **attributes)
    with pytest.raises(TypeError, match="^dtype: expected one of"):
        conventions.compare(5, 2, op="average", dtype="complex64")


def test_windows_are_those_of_the_output():
    for question in questions(5, 300):
        for a in conventions.compare(**question).answers:
            assert (a.output_shape is None) == (not a.windows) == bool(a.problem)
            if a.windows:
                assert tuple(w.output for w in a.windows) == a.output_shape
            for w in a.windows:
                assert w.fitting <= w.reaching and 0 <= len(w.added) + len(w.dropped) <= 1


def test_all_four_differ():
    comparison = conventions.compare(6, 3, strides=2, pads=2, ceil_mode=True)
    assert [a.name for a in comparison.answers] == NAMES
    shapes = [a.output_shape for a in comparison.answers]
    assert shapes == [(4,), (5,), None, (2,), (3,)]
    assert str(comparison).splitlines() == [
        "size (6,), kernel_shape (3,), strides (2,), pads (2, 2), ceil_mode",
        "ONNX                (4,)   ceil_mode=1",
        "                           texts before opset 22 keep window 4",
        'OpenVINO            (5,)   rounding_type="ceil"',
        '                           "ceil_torch", of version 14, drops window 4',
        "torch               error  padding of at most half the kernel",
        'TensorFlow "VALID"  (2,)   no pads, no ceil_mode',
        'TensorFlow "SAME"   (3,)   no pads, no ceil_mode',
    ]


def test_a_window_larger_than_the_padded_input():
    """Rounding up makes one window of it, but not in OpenVINO."""
    exceeds = "kernel_shape[0]: window (3 - 1) * 1 + 1 = 3 exceeds the padded input 1 + 0 + 0 = 1"
    for op, call in (("max", ""), ("average", 'exclude-pad="true"')):
        onnx, openvino, torch, valid, _ = conventions.compare(
            1, 3, strides=3, ceil_mode=True, op=op
        ).answers
        assert onnx.output_shape == torch.output_shape == (1,)
        assert openvino.output_shape is valid.output_shape is None
        assert openvino.problem == valid.problem == f"{exceeds} of axis W"
        assert openvino.call == ", ".join(filter(None, ['rounding_type="ceil"', call]))
        for a in conventions.compare(1, 3, strides=3, op=op).answers[:4]:
            assert a.output_shape is None and a.problem == f"{exceeds} of axis W"


def test_what_means_nothing_anywhere_is_refused():
    for attributes, match in (
        ({"sizes": 0}, r"^sizes\[0\]: expected an int of at least 1"),
        ({"sizes": ()}, "^sizes: expected"),
        ({"kernel_shape": (1, 2)}, "^kernel_shape"),
        ({"strides": 0}, "^strides"),
        ({"pads": -1}, "^pads"),
        ({"auto_pad": "SAME"}, "^auto_pad"),
        ({"ceil_mode": 2}, "^ceil_mode"),
    ):
        with pytest.raises(ValueError, match=match):
            conventions.compare(**{"sizes": 5, "kernel_shape": 2, **attributes})
    with pytest.raises(TypeError, match="^sizes"):
        conventions.compare("55", 2)


def test_drawings(tmp_path):
    pytest.importorskip("matplotlib")
    row = conventions.compare(6, 3, strides=2, pads=2, ceil_mode=True)
    figure = row.draw()
    assert len(figure.axes) == 4  # torch refuses
    heads = [text.get_text() for text in figure.texts]
    assert "torch: error" in heads and "padding of at most half the kernel" in heads
    assert "OpenVINO: (5,)" in heads
    for name in ("a.svg", "b.svg"):
        row.draw(width=4).savefig(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    plane = conventions.compare((224, 7), (3, 2), strides=2)
    assert len(plane.draw(width=16).axes) == 5
    assert "<img" in plane._repr_html_() and "<table>" in plane._repr_html_()


def test_what_cannot_be_drawn():
    pytest.importorskip("matplotlib")
    solid = conventions.compare((5, 5, 5), 2)
    with pytest.raises(ValueError, match="^3 spatial axes cannot be drawn"):
        solid.draw()
    nothing = conventions.compare(2, 4, auto_pad="VALID")
    with pytest.raises(ValueError, match="^no convention takes"):
        nothing.draw()
    for comparison in (solid, nothing):
        assert "<img" not in comparison._repr_html_() and "<table>" in comparison._repr_html_()


def test_without_matplotlib():
    code = """
import sys
sys.modules["matplotlib"] = None
from fastpool import conventions
comparison = conventions.compare(5, 2)
print("<img" in comparison._repr_html_())
try:
    comparison.draw()
except ImportError as error:
    print(error)
"""
    lines = ["False", 'drawing needs matplotlib: pip install "fastpool[plot]"']
    assert cases.run_python(code).stdout.splitlines() == lines
