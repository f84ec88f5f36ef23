"""
Large rasters: files and dask
=============================

Elevation models and satellite pictures are often larger than memory. :mod:`fastpool.files` pools
``.npy`` files by mapped tiles, and :mod:`fastpool.dask` pools arrays in chunks. Both give the
results of one call on the whole array, indices included.
"""

import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import scipy.ndimage

import fastpool.dask
import fastpool.files

# %%
# A synthetic terrain of 3000 x 4000 metres, in a file. (It could have any size; this page must
# build quickly.)

rng = np.random.default_rng(7)
rough = np.fft.rfft2(rng.standard_normal((300, 400)))
frequency = np.hypot(np.fft.fftfreq(300)[:, None], np.fft.rfftfreq(400)) + 0.002
terrain = np.fft.irfft2(rough / frequency**2.3)
terrain = scipy.ndimage.zoom(terrain / abs(terrain).max() * 900 + 1100, 10, order=1)
folder = Path(tempfile.mkdtemp())
np.save(folder / "terrain.npy", terrain.astype(np.float32))

# %%
# The height and the position of the highest point of every 250 x 250 block. 4 MiB of input and
# results are mapped at a time.

plan = fastpool.files.max_pool(
    *(folder / "terrain.npy", folder / "highest.npy", 250),
    strides=250,
    layout="HW",
    indices=folder / "where.npy",
    max_bytes=4 << 20,
)
print(plan.output_shape)
highest, where = np.load(folder / "highest.npy"), np.load(folder / "where.npy")
rows, columns = np.unravel_index(where, plan.input_shape)

# %%
# dask gives equal results, in chunks that do not fit the blocks. Windows over the border of two
# chunks fetch what they need from the next chunk.

chunks = da.from_array(np.load(folder / "terrain.npy", mmap_mode="r"), chunks=(700, 900))
y, indices = fastpool.dask.max_pool(chunks, 250, strides=250, layout="HW", return_indices=True)
print(np.array_equal(y.compute(), highest), np.array_equal(indices.compute(), where))

# %%
# A summit is the highest point of its block and of the 500 x 500 metres around it.

summits = fastpool.dask.max_pool(chunks, 501, pads=250, layout="HW")
is_summit = summits.vindex[rows.ravel(), columns.ravel()].compute() == highest.ravel()

figure, axes = plt.subplots(figsize=(8, 5.6), layout="constrained")
light = plt.matplotlib.colors.LightSource(315, 40)
shaded = light.hillshade(terrain[::5, ::5], vert_exag=0.7, dx=5, dy=5)
extent = {"extent": (0, 4000, 3000, 0)}
axes.imshow(terrain[::5, ::5], cmap="YlGn_r", **extent)
axes.imshow(shaded, cmap="gray", alpha=0.45, **extent)
axes.scatter(columns, rows, s=6, color="black", label="highest of its block")
axes.scatter(
    *(columns.ravel()[is_summit], rows.ravel()[is_summit]),
    **{"s": 60, "marker": "^", "color": "#D55E00", "edgecolors": "white", "label": "summit"},
)
axes.set_xticks(range(0, 4001, 250), labels=[])
axes.set_yticks(range(0, 3001, 250), labels=[])
axes.grid(color="white", lw=0.3)
axes.legend(loc="upper right")
plt.show()
