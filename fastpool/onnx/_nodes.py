"""Read pooling nodes of models: check them against their opset version, and call fastpool."""

from functools import partial, wraps
from typing import NamedTuple

from onnx import AttributeProto
from onnx.helper import get_attribute_value

from .._planning.arguments import shown
from ._operators import max_pool, max_unpool

MICROSOFT = "com.microsoft"
INTERNAL_NHWC = "com.ms.internal.nhwc"

# Arguments of max_pool and max_unpool that no node has: conventions and threads.
RULES = ("nan", "ceil_rule", "pads_with_auto_pad", "index_space", "num_threads")

_INT, _INTS = AttributeProto.INT, AttributeProto.INTS
_FLOATS, _STRING = AttributeProto.FLOATS, AttributeProto.STRING

# name -> (type, opset version that introduced it)
_UNPOOL = {"kernel_shape": (_INTS, 1), "strides": (_INTS, 1), "pads": (_INTS, 1)}
_POOL = _UNPOOL | {
    "auto_pad": (_STRING, 1),
    "storage_order": (_INT, 8),
    "ceil_mode": (_INT, 10),
    "dilations": (_INTS, 10),
}
_ACTIVATION = {"activation": (_STRING, 1), "activation_params": (_FLOATS, 1)}
# This domain has its own version numbers.
_MICROSOFT_POOL = {name: (kind, 1) for name, (kind, _) in _POOL.items() if name != "storage_order"}

INDICES_SINCE = 8


class Operator(NamedTuple):
    call: object
    since: int  # opset version
    attributes: dict
    layout: str = "NCHW"
    has_indices: bool = False


# (domain, operator) -> its description. com.ms.internal.nhwc has the standard's versions.
OPERATORS = {
    ("", "MaxPool"): Operator(max_pool, 1, _POOL, has_indices=True),
    ("", "MaxUnpool"): Operator(max_unpool, 9, _UNPOOL),
    (INTERNAL_NHWC, "MaxPool"): Operator(max_pool, 1, _POOL | _ACTIVATION, "NHWC", True),
    (INTERNAL_NHWC, "MaxUnpool"): Operator(max_unpool, 9, _UNPOOL | _ACTIVATION, "NHWC"),
    (MICROSOFT, "NhwcMaxPool"): Operator(max_pool, 1, _MICROSOFT_POOL, "NHWC"),
}


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
    for name in rules:
        if name not in RULES:
            raise TypeError(f"{shown(name)[1:-1]}: expected one of {', '.join(RULES)}")


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
        The node is invalid in its opset version. The returned function raises what `max_pool` and
        `max_unpool` raise, with the node's name in front.
    """
    attributes = read_attributes(node, opsets)
    operator = OPERATORS[kind_of(node)]
    n_outputs = _check_ends(node, opsets)
    rules = {name: value for name, value in rules.items() if name in operator.call.__kwdefaults__}
    call = partial(operator.call, **attributes, **rules, layout=operator.layout)
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
    """Return the attributes of a pooling node, as `max_pool` and `max_unpool` take them.

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
                f"{node.op_type} has {', '.join(operator.attributes)}"
            )
        kind, since = operator.attributes[attribute.name]
        if version < since:
            raise ValueError(
                f"{label(node)}: {name} came with opset {since}, the model imports {version}"
            )
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
    if "kernel_shape" not in seen:
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
    operator = OPERATORS[kind_of(node)]
    names = ("x",) if operator.call is max_pool else ("x", "indices", "output_shape")
    required = names[:2]
    if not len(required) <= len(node.input) <= len(names) or not all(node.input[: len(required)]):
        raise ValueError(
            f"{label(node)}: expected inputs {', '.join(names)}, got {shown(list(node.input))}"
        )
    most = 2 if operator.has_indices and opsets[kind_of(node)[0]] >= INDICES_SINCE else 1
    if not 1 <= len(node.output) <= most or not node.output[0]:
        raise ValueError(
            f"{label(node)}: expected outputs {', '.join(('y', 'indices')[:most])}, "
            f"got {shown(list(node.output))}"
        )
    return 2 if len(node.output) == 2 and node.output[1] else 1
