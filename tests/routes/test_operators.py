"""docs/operators.md names every pooling operator that there is, and says what fastpool has for it.

The lists are those of the packages, so a new operator or version fails here.
"""

import importlib
import operator
import pathlib
import pkgutil
import re
from typing import NamedTuple

import pytest

import fastpool

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "operators.md"


class Row(NamedTuple):
    names: list
    versions: list
    call: str  # "no", and why, if there is none

    @property
    def works(self):
        return not self.call.startswith("no")

    @property
    def function(self):
        """The function of fastpool that the row names first."""
        path = re.search(r"`([\w.]+)", self.call)[1]
        return operator.attrgetter(path)(fastpool)


def rows(of):
    """The rows of one list of operators."""
    cells = [re.split(r" *\| *", line)[1:-1] for line in PAGE.read_text().splitlines()]
    found = [
        Row(names.split(", "), [*map(int, re.findall(r"\d+", versions))], call)
        for whose, names, versions, call in (row for row in cells if len(row) == 4)
        if whose == of
    ]
    assert found
    return found


def versions_of(of):
    """Operator -> its versions, for all rows of one list."""
    return {name: row.versions for row in rows(of) for name in row.names}


def plain(names):
    """Names without capitals and underscores."""
    return {name.replace("_", "").lower() for name in names}


# -------------------------------------------------------------------------------------- ONNX


def assert_nodes_are_read(domain, row, schemas):
    """fastpool.onnx reads a node of these versions, with their attributes and inputs."""
    from fastpool.onnx._nodes import OPERATORS

    for name in row.names:
        known = OPERATORS[domain, name]
        assert known.call is row.function or row.call.startswith("`global_")
        for schema in schemas[name]:
            version = schema.since_version
            attributes = {
                attribute
                for attribute, (_, since, until, _) in known.attributes.items()
                if since <= version <= until
            }
            inputs = [since for since in known.inputs.values() if since <= version]
            assert known.since <= version
            assert attributes == set(schema.attributes), (name, version)
            assert len(inputs) == len(schema.inputs), (name, version)


def by_name(schemas, domain, others):
    """Name -> schemas, oldest first, of what pools in a domain."""
    found = {}
    for schema in sorted(schemas, key=lambda schema: schema.since_version):
        if schema.domain == domain and ("pool" in schema.name.lower() or schema.name in others):
            found.setdefault(schema.name, []).append(schema)
    return found


def test_onnx():
    onnx = pytest.importorskip("onnx")
    others = {"ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "RoiAlign"}
    schemas = by_name(onnx.defs.get_all_schemas_with_history(), "", others)
    assert versions_of("ONNX") == {
        name: [schema.since_version for schema in of_name] for name, of_name in schemas.items()
    }
    for row in rows("ONNX"):
        if row.works and "not in models" not in row.call:
            assert_nodes_are_read("", row, schemas)


@pytest.mark.parametrize("domain", ["com.ms.internal.nhwc", "com.microsoft", "com.microsoft.nchwc"])
def test_onnxruntime(domain):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime

    schemas = by_name(onnxruntime.get_all_operator_schema(), domain, {"QLinearReduceMean"})
    assert versions_of(domain) == {
        name: [schema.since_version for schema in of_name] for name, of_name in schemas.items()
    }
    for row in rows(domain):
        if row.works:
            assert_nodes_are_read(domain, row, schemas)


# ---------------------------------------------------------------------------------- OpenVINO


def test_openvino():
    """An opset's function is that of the opset which last changed the operator."""
    openvino = pytest.importorskip("openvino")
    from fastpool.openvino._attributes import VERSIONS

    others = {"reduce_max", "reduce_min", "reduce_mean", "reduce_l1", "reduce_l2"}
    found = {}
    for module in pkgutil.iter_modules(openvino.__path__):
        if re.fullmatch(r"opset\d+", module.name):
            opset = importlib.import_module(f"openvino.{module.name}")
            for name in dir(opset):
                if "pool" in name or name.startswith("roi_") or name in others:
                    home = getattr(opset, name).__module__
                    versions = found.setdefault(name.replace("_", ""), set())
                    versions.add(int(re.search(r"opset(\d+)", home)[1]))
    page = versions_of("OpenVINO")
    assert {name.lower(): set(versions) for name, versions in page.items()} == found
    assert VERSIONS == {name: tuple(page[name]) for name in VERSIONS}
    for row in rows("OpenVINO"):
        assert row.call.startswith("`openvino.") == (set(row.names) <= set(VERSIONS))
        assert not row.works or callable(row.function)


# ------------------------------------------------------------------------------------- torch


def torch_functions(module):
    """The public functions of a module that pool. Those with indices are forms of others."""
    return {
        name
        for name in dir(module)
        if "pool" in name and name[0].islower() and not name.endswith("_with_indices")
    }


def torch_modules(module):
    """The classes of a module that pool."""
    return {name for name in dir(module) if "pool" in name.lower() and name[0].isupper()}


def test_torch():
    torch = pytest.importorskip("torch")
    import fastpool.torch

    page = rows("torch")
    assert {name for row in page for name in row.names} == torch_functions(torch.nn.functional)
    assert plain(name for row in page for name in row.names) == plain(torch_modules(torch.nn))
    working = {name for row in page if row.works for name in row.names}
    assert working == torch_functions(fastpool.torch) - {"replace_pooling", "restore_pooling"}
    assert plain(working) == plain(torch_modules(fastpool.torch))
    for row in rows("torch, tensors"):
        for name in row.names:
            assert callable(getattr(torch.Tensor, name))
        assert callable(row.function)


def test_torch_quantized():
    torch = pytest.importorskip("torch")
    functions = torch_functions(torch.ao.nn.quantized.functional)
    assert set(versions_of("torch, quantized")) == functions


# --------------------------------------------------------------------------- TensorFlow Lite


def test_tensorflow_lite():
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    pools = {
        name
        for name in dir(schema.BuiltinOperator)
        if re.search("POOL|WINDOW", name) or name in ("MEAN", "REDUCE_MAX", "REDUCE_MIN")
    }
    assert set(versions_of("TensorFlow Lite")) == pools
    for row in rows("TensorFlow Lite"):
        assert not row.works or callable(row.function)
