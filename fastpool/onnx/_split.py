"""Cut a graph at some of its nodes, into pieces that are as large as possible."""

from collections import defaultdict
from typing import NamedTuple

from onnx import AttributeProto

from ._graph import inputs_of
from ._nodes import kind_of

# Operators that give other numbers each time, even without inputs.
_RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
_RANDOM |= {"RandomUniformLike"}
_OUTSIDE = -1  # no level: a node that is taken, or the caller


class Piece(NamedTuple):
    """Nodes that run together, and the names of their inputs and outputs."""

    nodes: list
    inputs: list
    outputs: list


def split(graph, is_taken):
    """Return one list of pieces and taken nodes, in execution order.

    The level of a node is the largest number of taken nodes on any path to it. All other nodes of
    one level form one piece, across branches, followed by the taken nodes of that level. Values
    computed from constants only (weights that are filled or unpacked) are repeated in each piece
    that reads them, because engines compute constants when they load a model.
    """
    constants = graph.initializers.keys() - graph.optional
    made_by = {}  # output of a node that only has constants -> the node's number
    level = defaultdict(int)  # of values
    own, taken = defaultdict(list), defaultdict(list)  # level -> numbers of nodes, nodes
    readers = defaultdict(set)  # name -> levels
    for number, node in enumerate(graph.nodes):
        names = inputs_of(node)
        take = is_taken(node)
        if not take and constants.issuperset(names) and _is_function_of_inputs(node):
            constants.update(node.output)
            made_by.update(dict.fromkeys(node.output, number))
            continue
        at = max((level[name] for name in names), default=0)
        if take:
            taken[at].append(node)
        else:
            own[at].append(number)
        for name in names:
            readers[name].add(_OUTSIDE if take else at)
        level.update(dict.fromkeys(node.output, at + take))
    for output in graph.outputs:
        readers[output.name].add(_OUTSIDE)
    # Constants that leave their piece do so at the first level.
    own[0] += sorted({number for name, number in made_by.items() if _OUTSIDE in readers[name]})

    parts = []
    for at in sorted(own.keys() | taken.keys()):
        leaving = [
            name
            for number in own[at]
            for name in graph.nodes[number].output
            if readers[name] - {at}
        ]
        if leaving:
            numbers = _with_constants(own[at], graph.nodes, made_by)
            nodes = [graph.nodes[number] for number in sorted(numbers)]
            parts.append(Piece(nodes, entering(nodes, graph), leaving))
        parts += taken[at]
    return parts


def _is_function_of_inputs(node):
    """Does a node give equal outputs for equal inputs? Subgraphs and other domains count as no."""
    domain, op_type = kind_of(node)
    subgraphs = {AttributeProto.GRAPH, AttributeProto.GRAPHS}
    return (
        not domain
        and op_type not in _RANDOM
        and subgraphs.isdisjoint(attribute.type for attribute in node.attribute)
    )


def _with_constants(numbers, nodes, made_by):
    """Return the nodes of these numbers, and those that make the constants that they read."""
    found, left = set(numbers), list(numbers)
    while left:
        for name in inputs_of(nodes[left.pop()]):
            number = made_by.get(name)
            if number is not None and number not in found:
                found.add(number)
                left.append(number)
    return found


def entering(nodes, graph):
    """Return the names that nodes read and none of them makes, except constant initializers."""
    made = {name for node in nodes for name in node.output}
    made |= graph.initializers.keys() - graph.optional
    return list(dict.fromkeys(n for node in nodes for n in inputs_of(node) if n not in made))
