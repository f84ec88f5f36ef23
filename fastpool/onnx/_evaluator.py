"""Make pooling operators for onnx.reference.ReferenceEvaluator."""

from onnx.defs import get_schema
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op

from ._global import are_spatial
from ._nodes import OPERATORS, REDUCTIONS, read_attributes


def _operator_class(domain, op_type):
    """Return a class that onnx.reference finds by its name and instantiates for each node."""
    operator = OPERATORS[domain, op_type]

    def __init__(self, onnx_node, run_params, schema=None):
        # Check names, types and versions. The values come with each run.
        read_attributes(onnx_node, run_params["opsets"], in_function=True)
        OpRun.__init__(self, onnx_node, run_params, schema)

    def _run(self, *arrays, **attributes):
        if "indices" in operator.outputs:
            attributes["n_outputs"] = 2 if len(self.output) == 2 and self.output[1] else 1
        results = operator.call(*arrays, **(attributes | operator.fixed))
        return results if isinstance(results, tuple) else (results,)

    members = {"op_domain": domain, "__init__": __init__, "_run": _run, "__module__": __name__}
    return type(op_type, (OpRun,), members)


def _reduction_class(domain, op_type):
    """Return a class for a reduction. onnx.reference's own runs it over other axes."""
    pooling = _operator_class(domain, op_type)

    def __init__(self, onnx_node, run_params, schema=None):
        version = run_params["opsets"][domain]
        # Otherwise the node gets the attributes of the newest version.
        pooling.__init__(self, onnx_node, run_params, get_schema(op_type, version, domain))
        self._reference = load_op(domain, op_type, version)(onnx_node, run_params)

    def _run(self, x, *axes, **attributes):
        given = attributes.get("axes") if not axes or axes[0] is None else axes[0].tolist()
        if are_spatial(given, x.ndim):
            return pooling._run(self, x, *axes, **attributes)
        return self._reference._run(x, *axes, **attributes)

    members = {"__init__": __init__, "_run": _run, "__module__": __name__}
    return type(op_type, (pooling,), members)


ops = [(_reduction_class if kind in REDUCTIONS else _operator_class)(*kind) for kind in OPERATORS]
