"""Read pooling nodes of models: check them against their opset version, and call fastpool."""

from functools import partial, wraps
from operator import and_
from typing import NamedTuple

from onnx import AttributeProto
from onnx.helper import get_attribute_value

from .._planning import arguments
from .._planning.operators import pads_rule
from .._planning.values import shown
from ._averages import average_pool, qlinear_average_pool, qlinear_global_average_pool
from ._global import global_average_pool, global_max_pool, reduce_max, reduce_mean
from ._lp import global_lp_pool, lp_pool
from ._operators import max_pool, max_unpool

MICROSOFT = "com.microsoft"
INTERNAL_NHWC = "com.ms.internal.nhwc"

# Arguments of the operators that no node has, conventions and threads -> what checks a value.
RULES = {
    "nan": arguments.nan,
    "ceil_rule": arguments.ceil_rule,
    "pads_with_auto_pad": pads_rule,
    "index_space": arguments.index_space,
    "numerics": arguments.numerics,
    "beyond": arguments.beyond,
    "partial": arguments.partial,
    "num_threads": arguments.num_threads,
}

_INT, _INTS = AttributeProto.INT, AttributeProto.INTS
_FLOAT, _FLOATS, _STRING = AttributeProto.FLOAT, AttributeProto.FLOATS, AttributeProto.STRING


class Attribute(NamedTuple):
    kind: int
    since: int = 1  # opset version that introduced it
    until: int = 2**63  # the last that has it
    first_kind: int | None = None  # in opset 1, if it is another one


class Operator(NamedTuple):
    call: object
    since: int  # opset version
    attributes: dict = {}  # name -> Attribute
    inputs: dict = {"x": 1}  # name -> opset version that introduced it
    outputs: dict = {"y": 1}  # name -> opset version that introduced it
    fixed: dict = {}  # arguments that follow from the domain


_UNPOOL = dict.fromkeys(("kernel_shape", "strides", "pads"), Attribute(_INTS))
_WINDOW = _UNPOOL | {"auto_pad": Attribute(_STRING), "ceil_mode": Attribute(_INT, 10)}
_MAX = _WINDOW | {"storage_order": Attribute(_INT, 8), "dilations": Attribute(_INTS, 10)}
_AVERAGE = _WINDOW | {
    "count_include_pad": Attribute(_INT, 7),
    "dilations": Attribute(_INTS, 19),
}
_P = {"p": Attribute(_INT, first_kind=_FLOAT)}
_LP = _WINDOW | _P | {"ceil_mode": Attribute(_INT, 18), "dilations": Attribute(_INTS, 18)}
_REDUCE = {
    "axes": Attribute(_INTS, until=17),
    "keepdims": Attribute(_INT),
    "noop_with_empty_axes": Attribute(_INT, 18),
}
_ACTIVATION = {"activation": Attribute(_STRING), "activation_params": Attribute(_FLOATS)}
_CHANNELS_LAST = {"channels_last": Attribute(_INT)}


def _of_own_versions(*names):
    """Return attributes of a domain whose first version has all that it ever had."""
    known = _MAX | _AVERAGE | _CHANNELS_LAST
    return {name: Attribute(known[name].kind) for name in names}


_MICROSOFT_POOL = _of_own_versions(*_WINDOW, "dilations")
_QLINEAR = _of_own_versions(*_WINDOW, "count_include_pad", "channels_last")

_OPTIONAL_INPUTS = {"output_shape", "x_zero_point", "y_zero_point", "axes"}
_QUANTIZED = dict.fromkeys(("x", "x_scale", "x_zero_point", "y_scale", "y_zero_point"), 1)
_PLACED = dict.fromkeys(("x", "indices", "output_shape"), 1)
_WITH_INDICES = {"y": 1, "indices": 8}
_WITH_AXES = {"x": 1, "axes": 18}

_NHWC = {"layout": "NHWC"}
_LAST = {"channels_last": 1}

# (domain, operator) -> its description. com.ms.internal.nhwc has the standard's versions.
OPERATORS = {
    ("", "MaxPool"): Operator(max_pool, 1, _MAX, outputs=_WITH_INDICES),
    ("", "MaxUnpool"): Operator(max_unpool, 9, _UNPOOL, _PLACED),
    ("", "AveragePool"): Operator(average_pool, 1, _AVERAGE),
    ("", "GlobalAveragePool"): Operator(global_average_pool, 1),
    ("", "GlobalMaxPool"): Operator(global_max_pool, 1),
    ("", "LpPool"): Operator(lp_pool, 1, _LP),
    ("", "GlobalLpPool"): Operator(global_lp_pool, 1, _P),
    ("", "ReduceMean"): Operator(reduce_mean, 1, _REDUCE, _WITH_AXES),
    ("", "ReduceMax"): Operator(reduce_max, 1, _REDUCE, _WITH_AXES),
    (INTERNAL_NHWC, "MaxPool"): Operator(
        max_pool, 1, _MAX | _ACTIVATION, outputs=_WITH_INDICES, fixed=_NHWC
    ),
    (INTERNAL_NHWC, "MaxUnpool"): Operator(
        max_unpool, 9, _UNPOOL | _ACTIVATION, _PLACED, fixed=_NHWC
    ),
    (INTERNAL_NHWC, "AveragePool"): Operator(average_pool, 7, _AVERAGE | _ACTIVATION, fixed=_NHWC),
    (INTERNAL_NHWC, "GlobalAveragePool"): Operator(global_average_pool, 1, fixed=_NHWC),
    (INTERNAL_NHWC, "GlobalMaxPool"): Operator(global_max_pool, 1, fixed=_NHWC),
    (INTERNAL_NHWC, "LpPool"): Operator(lp_pool, 11, _LP, fixed=_NHWC),
    (INTERNAL_NHWC, "GlobalLpPool"): Operator(global_lp_pool, 2, _P, fixed=_NHWC),
    (INTERNAL_NHWC, "QLinearAveragePool"): Operator(
        qlinear_average_pool, 1, _QLINEAR, _QUANTIZED, fixed=_LAST
    ),
    (MICROSOFT, "NhwcMaxPool"): Operator(max_pool, 1, _MICROSOFT_POOL, fixed=_NHWC),
    (MICROSOFT, "QLinearAveragePool"): Operator(qlinear_average_pool, 1, _QLINEAR, _QUANTIZED),
    (MICROSOFT, "QLinearGlobalAveragePool"): Operator(
        qlinear_global_average_pool, 1, _CHANNELS_LAST, _QUANTIZED
    ),
}

# Reductions are poolings only if they are over exactly the spatial axes.
REDUCTIONS = {("", "ReduceMean"), ("", "ReduceMax")}


def kind_of(node):
    """Return (domain, operator). "ai.onnx" is another name of the standard domain ""."""
    return "" if node.domain == "ai.onnx" else node.domain, node.op_type


def is_pooling(node):
    return kind_of(node) in OPERATORS


def label(node):
    """Return the name of a node for error messages."""
    if node.name:
        return f"node {shown(node.name)} ({shown(node.op_type)[1:-1]})"
    output = next(iter(node.output), "")
    return f"node ({shown(node.op_type)[1:-1]}) of the output {shown(output)}"


def check_rules(rules):
    """Raise unless `rules` maps names in `RULES` to values that these arguments may have."""
    for name, value in rules.items():
        if name not in RULES:
            raise TypeError(f"{shown(name)[1:-1]}: expected one of {', '.join(RULES)}")
        RULES[name](value)


def pooling_call(node, opsets, rules):
    """Return a function of a pooling node: input arrays, None for absent -> a tuple of arrays.

    Parameters
    ----------
    node : NodeProto
        One for which `is_pooling` holds.
    opsets : dict
        Domain -> version, from the node's model.
    rules : dict
        Arguments named in `RULES`, for the operators that have them.

    Raises
    ------
    ValueError
        The node is invalid in its opset version. The returned function raises what the operator's
        function raises, with the node's name in front.
    """
    attributes = read_attributes(node, opsets)
    operator = OPERATORS[kind_of(node)]
    n_outputs = _check_ends(node, opsets)
    rules = {name: value for name, value in rules.items() if name in operator.call.__kwdefaults__}
    call = partial(operator.call, **(attributes | rules | operator.fixed))
    if n_outputs == 2:
        run = partial(call, n_outputs=2)
    else:

        def run(*arrays):
            return (call(*arrays),)

    return labelled(node, run)


def labelled(node, run):
    """Return `run` with the node named in its errors."""

    @wraps(run)
    def labelled_run(*arrays):
        try:
            return run(*arrays)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{label(node)}: {error}") from error

    return labelled_run


def read_attributes(node, opsets, *, in_function=False):
    """Return the attributes of a pooling node, as the operator's function takes them.

    Inside a function, references to the function's attributes are allowed and left out.
    """
    operator = OPERATORS[kind_of(node)]
    version = opset_version(node, opsets)
    if version < operator.since:
        raise ValueError(
            f"{label(node)}: {node.op_type} came with opset {operator.since}, "
            f"the model imports {version}"
        )
    values, seen = {}, set()
    for attribute in node.attribute:
        name = shown(attribute.name)[1:-1]
        if attribute.name not in operator.attributes:
            raise ValueError(
                f"{label(node)}: unknown attribute {name}; "
                f"{node.op_type} has {', '.join(operator.attributes) or 'none'}"
            )
        kind, since, until, first_kind = operator.attributes[attribute.name]
        kind = first_kind if version == 1 and first_kind is not None else kind
        if not since <= version <= until:
            moved = f"came with opset {since}" if version < since else f"ended with opset {until}"
            raise ValueError(f"{label(node)}: {name} {moved}, the model imports {version}")
        if name in seen:
            raise ValueError(f"{label(node)}: {name} is given twice")
        seen.add(name)
        if attribute.type != kind:
            expected, got = map(AttributeProto.AttributeType.Name, (kind, attribute.type))
            raise ValueError(f"{label(node)}: {name}: expected {expected}, got {got}")
        if not attribute.ref_attr_name:
            values[name] = get_attribute_value(attribute)
        elif not in_function:
            raise ValueError(f"{label(node)}: {name} refers to a function, but it is in none")
    if "kernel_shape" in operator.attributes and "kernel_shape" not in seen:
        raise ValueError(f"{label(node)}: kernel_shape is missing")
    return values


def opset_version(node, opsets):
    """Return the version of the node's domain that its model imports."""
    domain, _ = kind_of(node)
    if domain not in opsets:
        raise ValueError(
            f"{label(node)}: the model imports no version of the domain {shown(domain)}"
        )
    return opsets[domain]


def _check_ends(node, opsets):
    """Check the names of inputs and outputs; return the number of outputs."""
    operator, version = OPERATORS[kind_of(node)], opset_version(node, opsets)
    for what, table, optional, got in (
        ("inputs", operator.inputs, _OPTIONAL_INPUTS, node.input),
        ("outputs", operator.outputs, {"indices"}, node.output),
    ):
        names = [name for name, since in table.items() if since <= version]
        required = [name not in optional for name in names]
        absent = [not name for name in got] + [True] * (len(names) - len(got))
        if len(got) > len(names) or any(map(and_, required, absent)):
            raise ValueError(
                f"{label(node)}: expected {what} {', '.join(names)}, got {shown(list(got))}"
            )
    return 2 if len(node.output) == 2 and node.output[1] else 1
