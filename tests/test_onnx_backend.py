"""The onnx package's own MaxPool and MaxUnpool tests, run by its own backend runner.

All of them pass; there is no list of exceptions. They are the node tests of both operators and the
converted models that hold nothing else.
"""

from unittest import mock

import pytest

pytest.importorskip("onnx")

import onnx.backend.base
import onnx.backend.test
import onnx.backend.test.runner

import fastpool.onnx

OPERATORS = {"MaxPool": fastpool.onnx.max_pool, "MaxUnpool": fastpool.onnx.max_unpool}
LIST_ALL_TESTS = onnx.backend.test.runner.load_model_tests


class PoolingModel(onnx.backend.base.BackendRep):
    """A model made of MaxPool and MaxUnpool nodes."""

    def __init__(self, model):
        self.graph = model.graph

    def run(self, inputs, **kwargs):
        values = dict(zip((i.name for i in self.graph.input), inputs, strict=True))
        for node in self.graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "MaxPool":
                attributes["n_outputs"] = len(node.output)
            outputs = OPERATORS[node.op_type](*(values[i] for i in node.input), **attributes)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            values.update(zip(node.output, outputs, strict=True))
        return tuple(values[o.name] for o in self.graph.output)


class PoolingBackend(onnx.backend.base.Backend):
    """What onnx.backend.test needs to run a model."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return PoolingModel(model)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


def pooling_tests(data_dir=None, kind=None):
    """Stands in for onnx's loader: making the node tests of every operator takes 10 seconds."""
    if kind == "node":
        import onnx.backend.test.case.node.maxpool
        import onnx.backend.test.case.node.maxunpool

        cases = onnx.backend.test.case.node._NodeTestCases
        return [c for c in cases if c.model.graph.node[0].op_type in OPERATORS]
    if kind in ("pytorch-converted", "pytorch-operator"):
        return [c for c in LIST_ALL_TESTS(kind=kind) if "maxpool" in c.name.lower()]
    return []


def collect():
    """Test name -> unittest class that holds it, for the CPU."""
    with mock.patch.object(onnx.backend.test.runner, "load_model_tests", pooling_tests):
        classes = onnx.backend.test.BackendTest(PoolingBackend, __name__).test_cases.values()
    return {
        name: case
        for case in classes
        for name in dir(case)
        if name.startswith("test_") and name.endswith("_cpu")
    }


TESTS = collect()


@pytest.mark.parametrize("name", TESTS)
def test_onnx_backend(name):
    TESTS[name](name).debug()


def test_onnx_backend_is_complete():
    """A renamed module or loader must not turn the tests above into none."""
    names = " ".join(TESTS)
    assert names.count("test_maxpool_") >= 19
    assert names.count("test_maxunpool_") >= 2
    assert names.count("test_MaxPool") >= 8
    assert "test_operator_maxpool" in names
