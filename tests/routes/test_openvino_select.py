"""replace_pooling of fastpool.openvino replaces the poolings that fastpool runs faster."""

import numpy as np
import pytest

openvino = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset14")
ops16 = pytest.importorskip("openvino.opset16")

import fastpool.openvino  # noqa: E402
from openvino_models import run  # noqa: E402

LARGE, SMALL = [1, 8, 64, 64], [1, 2, 8, 8]


def model_of(kind, taps, strides=1, shape=LARGE, dtype=np.float32, indices=False, weights=None):
    """Return a model of one pooling; an adaptive one has `taps` outputs."""
    x = ops.parameter(shape, dtype, name="x")
    a = x if weights is None else ops.convolution(x, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    pads = [taps // 2] * 2
    window = [strides] * 2, pads, pads, [taps] * 2
    if kind == "MaxPool":
        pool = ops.max_pool(a, window[0], [1, 1], *window[1:], index_element_type="i32")
    elif kind == "AvgPool":
        pool = ops.avg_pool(a, *window, True)
    else:
        of_indices = ["i32"] if kind == "adaptive_max_pool" else []
        pool = getattr(ops, kind)(a, ops.constant(np.array([taps, 1])), *of_indices)
    pool.set_friendly_name("pool")
    return openvino.Model(pool.outputs()[: 1 + indices], [x])


WEIGHTS = np.ones((8, 8, 1, 1), np.float32)

FASTER = [
    (("MaxPool", 3), {"indices": True}, "fastpool, it has indices"),
    (("MaxPool", 3), {"indices": True, "shape": SMALL}, "fastpool, it has indices"),
    (("MaxPool", 3), {}, "OpenVINO, 9 taps per element of the input, faster from 64 on"),
    (("MaxPool", 9), {}, "fastpool, 81 taps per element of the input, faster from 64 on"),
    (("MaxPool", 9), {"shape": [-1, 8, -1, -1]}, "fastpool, 81 taps"),
    (("MaxPool", 9), {"shape": [-1, 2, 8, 8]}, "OpenVINO, 128 elements: a call pays from 32768 on"),
    (("MaxPool", 9), {"shape": [1, 2048, 4, 4]}, "OpenVINO, 16 taps"),
    (("MaxPool", 9, 2), {}, "OpenVINO, 20.2 taps"),
    (("MaxPool", 64, 64), {}, "OpenVINO, 4 taps"),
    (("MaxPool", 9), {"weights": WEIGHTS}, "OpenVINO, 81 taps per element of the input, faster f"),
    (("MaxPool", 13), {"weights": WEIGHTS}, "fastpool, 169 taps"),
    (("MaxPool", 3), {"dtype": np.uint8}, "fastpool, 9 taps"),
    (("AvgPool", 13), {}, "OpenVINO, 169 taps per element of the input, faster from 200 on"),
    (("AvgPool", 15), {}, "fastpool, 225 taps"),
    (("adaptive_avg_pool", 4), {}, "fastpool, adaptive windows"),
    (("adaptive_max_pool", 4), {}, "fastpool, adaptive windows"),
    (("adaptive_avg_pool", 1), {}, "OpenVINO, as fast on whole planes"),
]


@pytest.mark.parametrize(("pool", "arguments", "expected"), FASTER)
def test_what_is_faster(pool, arguments, expected):
    replaced = fastpool.openvino.replace_pooling(model_of(*pool, **arguments))
    title, line = replaced.explain().splitlines()
    is_ours = expected.startswith("fastpool")
    assert title == f"{int(is_ours)} replaced, {int(not is_ours)} left"
    assert line.partition("): ")[2].startswith(expected) and line.startswith("  'pool' (")
    assert len(replaced) == is_ours and list(replaced.left) == ["pool"] * (not is_ours)


def test_what_openvino_does_not_run():
    x = ops.parameter(SMALL, np.float32, name="x")
    adaptive = ops.adaptive_max_pool(x, ops.constant(np.array([1, 1])), "i64")
    mean = ops16.avg_pool(x, [1, 1], [0, 0], [0, 0], [2, 2], True)
    for pool in (adaptive, mean):
        replaced = fastpool.openvino.replace_pooling(openvino.Model(pool.outputs()[:1], [x]))
        assert replaced.explain().endswith("fastpool, OpenVINO does not run it")


def test_switch():
    x = np.random.default_rng(0).standard_normal(LARGE).astype(np.float32)
    for select, count, reason in (
        ("all", 1, 'fastpool, select="all"'),
        ("none", 0, 'OpenVINO, select="none"'),
        (None, 0, "OpenVINO, 9 taps"),
        (lambda node: node.get_friendly_name() == "pool", 1, "fastpool, selected"),
        (lambda node: False, 0, "OpenVINO, not selected"),
    ):
        model = model_of("AvgPool", 3)
        replaced = fastpool.openvino.replace_pooling(model, select=select)
        assert len(replaced) == count and reason in replaced.explain()
        assert any("Fastpool" in op.get_type_name() for op in model.get_ops()) == bool(count)
        (expected,), (got,) = run(model_of("AvgPool", 3), x), run(model, x)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    for wrong, error in (("fast", ValueError), (1, TypeError)):
        with pytest.raises(error, match="^select: expected "):
            fastpool.openvino.replace_pooling(model_of("AvgPool", 3), select=wrong)


def test_arguments_that_are_given_are_followed():
    for kind, given, followed in (
        ("MaxPool", {"nan": "propagate"}, "fastpool, follows nan"),
        ("MaxPool", {"numerics": "exact"}, "OpenVINO, 9 taps"),
        ("AvgPool", {"numerics": "sequential"}, "fastpool, follows numerics"),
        ("AvgPool", {"numerics": "exact", "nan": "ignore"}, "fastpool, follows nan, numerics"),
        ("AvgPool", {"layout": "NHWC"}, "OpenVINO, 9 taps"),
    ):
        replaced = fastpool.openvino.replace_pooling(model_of(kind, 3), **given)
        assert followed in replaced.explain()
