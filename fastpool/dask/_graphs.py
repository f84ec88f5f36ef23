"""Build the graphs of poolings and unpoolings: which blocks read which pieces of which chunks."""

import operator

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.array.overlap import ensure_minimum_chunksize
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from .._planning import arguments
from ._chunks import arranged, cut_out, pool_block, pooled_shares, unpool_block, unpooled_shares


def pooled(function, x, plan):
    """Return the results of a plan, lazily: an array, or a tuple of two."""
    axes = dict(zip(plan.spatial, plan.axes, strict=True))
    x = _merged(x, {place: axis.extent - 1 for place, axis in axes.items()})
    parts = [pooled_shares(axes.get(i), chunks) for i, chunks in enumerate(x.chunks)]
    dtypes = plan.result_dtypes(x.dtype)
    name = f"{function}-{tokenize(x, plan)}"
    graph = {}
    for key, shares in _blocks(name, parts):
        pieces = _pieces(graph, key, x, shares)
        graph[key] = Task(key, pool_block, plan, dtypes, _outputs(shares), pieces)
    graph = HighLevelGraph.from_collections(name, graph, dependencies=[x])
    if len(dtypes) == 1:
        return _array(graph, name, parts, *dtypes)
    return tuple(
        _array(_chosen(graph, name, which, parts), f"{name}-{which}", parts, kind)
        for which, kind in enumerate(dtypes)
    )


def reduced(function, x, plan, keepdims):
    """Return the results of a plan of a global pooling, with or without the spatial axes."""
    keepdims = arguments.keepdims(keepdims)
    results = pooled(function, x, plan)
    if keepdims:
        return results
    if isinstance(results, tuple):
        return tuple(result.squeeze(plan.spatial) for result in results)
    return results.squeeze(plan.spatial)


def unpooled(x, indices, plan):
    """Return the result of a plan of an unpooling, lazily."""
    windows = dict(zip(plan.spatial, plan.windows, strict=True))
    x = _merged(x, {i: -(-kernel // stride) - 1 for i, (kernel, stride, _) in windows.items()})
    indices = indices.rechunk(x.chunks)
    parts = [
        unpooled_shares(windows.get(i, (1, 1, 0)), chunks, plan.output_shape[i])
        for i, chunks in enumerate(x.chunks)
    ]
    name = f"max_unpool-{tokenize(x, indices, plan)}"
    graph = {}
    for key, shares in _blocks(name, parts):
        pieces = [_pieces(graph, key, array, shares) for array in (x, indices)]
        graph[key] = Task(key, unpool_block, plan, shares, *pieces)
    graph = HighLevelGraph.from_collections(name, graph, dependencies=[x, indices])
    return _array(graph, name, parts, x.dtype.newbyteorder("="))


def _blocks(name, parts):
    """Yield the key and the shares of every block."""
    for index in np.ndindex(*map(len, parts)):
        yield (name, *index), tuple(axis[i] for axis, i in zip(parts, index, strict=True))


def _outputs(shares):
    return tuple(share.output for share in shares)


def _pieces(graph, key, x, shares):
    """Return what a block is made from: its own chunk, and strips cut on the workers of others."""
    own = tuple(share.own for share in shares)
    refs = []
    for index in np.ndindex(*(len(share.pieces) for share in shares)):
        chunks, cut = zip(*(s.pieces[i] for s, i in zip(shares, index, strict=True)), strict=True)
        ref = TaskRef((x.name, *chunks))
        if index == own:
            own_cut = cut
        else:
            strip = (f"{key[0]}-halo-{x.name}", *key[1:], *index)
            graph[strip] = Task(strip, cut_out, ref, cut)
            ref = TaskRef(strip)
        refs.append(ref)
    counts = tuple(len(share.pieces) for share in shares)
    return Task(None, arranged, counts, own, own_cut, *refs)


def _chosen(graph, name, which, parts):
    """Return the graph with one of the two results of every block."""
    layer = {
        (f"{name}-{which}", *key[1:]): Task(
            (f"{name}-{which}", *key[1:]), operator.getitem, TaskRef(key), which
        )
        for key, _ in _blocks(name, parts)
    }
    layers = {**graph.layers, f"{name}-{which}": layer}
    return HighLevelGraph(layers, {**graph.dependencies, f"{name}-{which}": {name}})


def _array(graph, name, parts, dtype):
    chunks = tuple(tuple(s.output.stop - s.output.start for s in axis) for axis in parts)
    return da.Array(graph, name, chunks, meta=np.empty((0,) * len(chunks), dtype))


def _merged(x, halos):
    """Return `x` with chunks merged, so that a block needs only its own chunk and the next."""
    chunks = list(x.chunks)
    for place, size in halos.items():
        size = min(size, x.shape[place])
        if min(chunks[place][:-1], default=size) < size:
            chunks[place] = ensure_minimum_chunksize(size, chunks[place])
    return x.rechunk(tuple(chunks))
