"""Make pooling operators for onnx.reference.ReferenceEvaluator."""

from onnx.reference.op_run import OpRun

from ._nodes import OPERATORS, read_attributes
from ._operators import max_pool


def _operator_class(domain, op_type):
    """Return a class that onnx.reference finds by its name and instantiates for each node."""
    operator = OPERATORS[domain, op_type]

    def __init__(self, onnx_node, run_params, schema=None):
        # Check names, types and versions. The values come with each run.
        read_attributes(onnx_node, run_params["opsets"], in_function=True)
        OpRun.__init__(self, onnx_node, run_params, schema)

    def _run(self, *arrays, **attributes):
        if operator.call is max_pool:
            attributes["n_outputs"] = 2 if len(self.output) == 2 and self.output[1] else 1
        results = operator.call(*arrays, **attributes, layout=operator.layout)
        return results if isinstance(results, tuple) else (results,)

    members = {"op_domain": domain, "__init__": __init__, "_run": _run, "__module__": __name__}
    return type(op_type, (OpRun,), members)


ops = [_operator_class(*kind) for kind in OPERATORS]
