"""Draw three examples of science: labels, a raster with missing values, and a photograph.

The volume and the raster are made of formulas. Each example is reduced by fastpool and by a tool
that is used today, on the same numbers. Results of fastpool are compared with NumPy's, exactly.
"""

import html
import time
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.stats
import skimage.data
import skimage.measure
from PIL import Image

import fastpool

from .sheets import sheet_of

MISSING = -32768  # of a raster of int16

block_reduce = partial(fastpool.block_reduce, num_threads=1)
by_blocks = skimage.measure.block_reduce

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>fastpool: labels, rasters, photographs</title>
<style>body {{ font: 16px sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }}
img {{ max-width: 100% }} td, th {{ padding: 0 1em 0 0; text-align: left }}</style>
<h1>Labels, rasters, photographs</h1>
<p>Each array was reduced by fastpool {version} and by other tools, on this machine, on one thread
of fastpool. The volume and the raster are made of formulas.</p>
{examples}
</html>
"""
EXAMPLE = """<h2>{title}</h2>
<p>{text}</p>
<img src="{name}.png" alt="{title}: before, and reduced by each tool">
<table><tr><th>call<th>milliseconds<th>results that differ from fastpool's{rows}</table>
"""


class Example(NamedTuple):
    """An array and calls that reduce it, the first by fastpool. All results have one type."""

    name: str
    title: str
    text: str
    right: np.ndarray  # by NumPy
    calls: dict  # text -> function
    panels: dict  # caption -> function of all results that gives a picture


def labels():
    """Return cells in a volume: large numbers, 0 between them, as segmentations of images hold."""
    shape = 31, 125, 157
    rng = np.random.default_rng(1)
    centres = rng.uniform(0, shape, (90, 3))
    nearest = np.full(shape, np.inf)
    volume = np.zeros(shape, np.uint32)
    grid = np.ogrid[tuple(map(slice, shape))]
    for label, centre in zip(rng.integers(1, 2**32, 90), centres, strict=True):
        distance = sum((g - c) ** 2 for g, c in zip(grid, centre, strict=True))
        inside = (distance < nearest) & (distance < 250)
        volume[inside] = label
        nearest = np.minimum(nearest, distance)
    return volume


def heights():
    """Return an island of int16 metres, with the sea missing."""
    y, x = np.ogrid[:403, :597]
    height = 900 - ((y - 200) / 5) ** 2 / 2 - ((x - 300) / 7) ** 2 / 2
    for k in range(1, 7):
        height = height + 500 / k * np.sin(k * x / 37 + 2 * k) * np.cos(k * y / 41 + k)
    return np.where(height < 0, MISSING, height).astype(np.int16)


def blocks_of(x, k, fill):
    """Return the elements of each block along one new axis at the end; the rest is `fill`."""
    x = np.pad(x, [(0, -n % k) for n in x.shape], constant_values=fill)
    x = x.reshape([part for n in x.shape for part in (n // k, k)])
    return x.transpose(*range(0, x.ndim, 2), *range(1, x.ndim, 2)).reshape(*x.shape[::2], -1)


def most_frequent(blocks):
    """Return the most frequent label of each block, the smallest of several; 0 if all are 0."""
    count = (blocks[..., None] == blocks[..., None, :]).sum(-1)
    count[blocks == 0] = 0  # background, and what is beyond the array
    best = blocks.astype(np.int64)
    best[(count < count.max(-1, keepdims=True)) | (blocks == 0)] = 2**32
    return np.where(count.any(-1), best.min(-1), 0).astype(blocks.dtype)


def colours(labels):
    """Return colours of labels, black for 0."""
    mixed = labels.astype(np.uint64)[..., None] * np.array([2654435761, 40503, 69069], np.uint64)
    return np.where(labels[..., None], 55 + (mixed >> 13) % 200, 0).astype(np.uint8)


def relief(heights):
    """Return colours of metres: green, brown, white; blue where the metres are missing."""
    metres, missing = heights.astype(float), heights == MISSING
    picture = [np.interp(metres, [0, 900, 1900], c) for c in ([60, 150, 255], [130, 120, 255])]
    picture.append(np.interp(metres, [0, 900, 1900], [60, 70, 255]))
    picture = np.stack(picture, -1)
    picture[metres < 0] = 200, 0, 0  # no height of the island
    picture[missing] = 150, 190, 230
    return picture.astype(np.uint8)


def enlarged(picture, k):
    """Return a picture with each pixel drawn k times k."""
    return picture.repeat(k, 0).repeat(k, 1)


def of_labels():
    """Return the example of a segmentation of an image."""
    volume = labels()
    return Example(
        name="labels",
        title="A labelled volume",
        text="Cells of 31 x 125 x 157 voxels, by blocks of 2 x 2 x 2. The label of a block is the "
        "one that most of its voxels have, and 0, the background, only if all have it. Averages "
        "are labels that no cell has. scikit-image fills the last blocks of odd extents with "
        "zeros. There, as at the rims of cells, the background wins.",
        right=most_frequent(blocks_of(volume, 2, 0)),
        calls={
            'fastpool.block_reduce(x, 2, "mode", nodata=0)': lambda: block_reduce(
                volume, 2, "mode", nodata=0
            ),
            "skimage.measure.block_reduce(x, 2, scipy.stats.mode)": lambda: by_blocks(
                volume, 2, lambda blocks, axis: scipy.stats.mode(blocks, axis=axis).mode
            ),
            "skimage.measure.block_reduce(x, 2, np.mean)": lambda: by_blocks(
                volume, 2, np.mean
            ).astype(np.uint32),
        },
        panels={
            "before: a slice of the cells": lambda *_: enlarged(colours(volume[14]), 3),
            "fastpool, the most frequent label": lambda y, *_: enlarged(colours(y[7]), 6),
            "SciPy's mode: rims and borders are lost": lambda _, y, __: enlarged(colours(y[7]), 6),
            "averages: labels that no cell has": lambda *y: enlarged(colours(y[2][7]), 6),
        },
    )


def of_raster():
    """Return the example of a grid with missing values."""
    raster = heights()

    def by_masks():
        whole = raster[:400, :592].reshape(50, 8, 74, 8)
        y = np.ma.masked_equal(whole, MISSING).mean((1, 3)).filled(MISSING)
        return np.pad(np.rint(y).astype(np.int16), ((0, 1), (0, 1)), constant_values=MISSING)

    masked = np.ma.masked_equal(blocks_of(raster, 8, MISSING), MISSING)
    return Example(
        name="raster",
        title="A raster with missing values",
        text="Heights of 403 x 597 points in int16, where the sea is missing (-32768), by blocks "
        "of 8 x 8. A tool that does not know the number for missing values adds it at the coast "
        "(red). NumPy's masked arrays know it. Their reshape drops the last rows and columns.",
        right=np.rint(masked.mean(-1).filled(MISSING)).astype(np.int16),
        calls={
            'fastpool.block_reduce(x, 8, "mean", nodata=-32768)': lambda: block_reduce(
                raster, 8, "mean", nodata=MISSING
            ),
            "np.ma.masked_equal(x.reshape(...), -32768).mean((1, 3))": by_masks,
            "skimage.measure.block_reduce(x, 8, np.mean)": lambda: np.rint(
                by_blocks(raster, 8, np.mean)
            ).astype(np.int16),
        },
        panels={
            "before: heights, the sea is missing": lambda *_: relief(raster),
            "fastpool, nodata=-32768": lambda y, *_: enlarged(relief(y), 8),
            "masked arrays: whole blocks only": lambda _, y, __: enlarged(relief(y), 8),
            "scikit-image: the missing value is added": lambda *y: enlarged(relief(y[2]), 8),
        },
    )


def of_photograph():
    """Return the example of a thumbnail."""
    photo = skimage.data.chelsea()
    channels = np.moveaxis(photo.astype(np.int16), -1, 0)
    masked = [np.ma.masked_equal(blocks_of(channel, 16, -1), -1) for channel in channels]
    return Example(
        name="photograph",
        title="A photograph",
        text="A cat of 300 x 451 pixels, by blocks of 16 x 16. scikit-image fills the last blocks "
        "with black pixels, and its means are floats, which a cast to uint8 truncates. Pillow "
        "rounds halves up, and fastpool to even.",
        right=np.stack([np.rint(x.mean(-1).data).astype(np.uint8) for x in masked], -1),
        calls={
            'fastpool.block_reduce(x, (16, 16, 1), "mean")': lambda: block_reduce(
                photo, (16, 16, 1), "mean"
            ),
            "skimage.measure.block_reduce(x, (16, 16, 1), np.mean)": lambda: by_blocks(
                photo, (16, 16, 1), np.mean
            ).astype(np.uint8),
            "PIL.Image.fromarray(x).reduce(16)": lambda: np.asarray(
                Image.fromarray(photo).reduce(16)
            ),
        },
        panels={
            "before": lambda *_: photo,
            "fastpool": lambda y, *_: enlarged(y, 16),
            "scikit-image: a dark border": lambda _, y, __: enlarged(y, 16),
            "Pillow": lambda *y: enlarged(y[2], 16),
        },
    )


def timed(function):
    """Return the result of a function, and its least time of five calls, or of one of a second."""
    times = []
    while len(times) < 5 and sum(times) < 1:
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return result, min(times)


def run(output):
    """Write the page science.html and its pictures into a folder.

    Returns
    -------
    lines : list of str
        One for each call: its time, and how many results differ from fastpool's.
    problems : list of str
        What is not as NumPy has it.
    """
    lines, problems, parts = [], [], []
    for example in (of_labels(), of_raster(), of_photograph()):
        results, rows = [], ""
        for call, function in example.calls.items():
            y, seconds = timed(function)
            results.append(y)
            differ = np.count_nonzero(results[-1] != results[0])
            lines.append(f"{example.name:12}{1e3 * seconds:9.2f} ms {differ:8} differ  {call}")
            rows += f"\n<tr><td><code>{html.escape(call)}</code><td>{1e3 * seconds:.2f}<td>"
            rows += f"{differ:,} of {results[0].size:,}" if len(results) > 1 else ""
        if not np.array_equal(results[0], example.right):
            problems.append(f"{example.name}: fastpool and NumPy differ")
        panels = {caption: draw(*results) for caption, draw in example.panels.items()}
        height, width = np.max([panel.shape[:2] for panel in panels.values()], 0)
        sheet_of(panels, width, height).save(output / f"{example.name}.png")
        parts.append(EXAMPLE.format(**example._asdict(), rows=rows))
    page = PAGE.format(version=fastpool.__version__, examples="\n".join(parts))
    (output / "science.html").write_text(page, encoding="utf-8")
    return lines, problems
