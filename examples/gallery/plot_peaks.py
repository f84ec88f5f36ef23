"""
Peaks in a heat map
===================

A peak is an element that is the largest of its neighbourhood: the maximum over a window around it
at stride 1 is the element itself. Detectors with heat maps (CenterNet, pose networks) find objects
like this, and astronomers find stars.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage

import fastpool

# %%
# The heat map is the blurred brightness of a picture of the Hubble telescope.

sky = skimage.data.hubble_deep_field()[:500, :700]
heat = skimage.filters.gaussian(skimage.color.rgb2gray(sky), 1.5).astype(np.float32)

# %%
# A window of 11 x 11, padded by 5 on all sides, gives a maximum for every pixel. If that is the
# pixel itself, it is a peak. Faint peaks are left out.

around = fastpool.max_pool(heat, 11, pads=5, layout="HW")
rows, columns = np.nonzero((heat == around) & (heat > 0.2))
print(len(rows), "peaks")

# %%
# scikit-image finds the same peaks.

same = skimage.feature.peak_local_max(
    heat, min_distance=5, threshold_abs=0.2, exclude_border=False, p_norm=np.inf
)
print(sorted(zip(rows, columns, strict=True)) == sorted(map(tuple, same)))

# %%

brightness = heat[rows, columns]
figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
axes.imshow(sky)
axes.scatter(columns, rows, s=30 + 200 * brightness, edgecolors="#E69F00", facecolors="none")
axes.set_axis_off()
figure.suptitle(f"{len(rows)} peaks, circles by brightness")
plt.show()

# %%
# Equal neighbours
# ----------------
#
# Two equal elements in one window would both be peaks. The index of a maximum names only the first
# of them in row-major order. So an element is a peak if the index of its window is its own.

plateau = np.array([[0, 0, 0, 0], [0, 7, 7, 0], [0, 0, 0, 0]])
largest, where = fastpool.max_pool(plateau, 3, pads=1, layout="HW", return_indices=True)
own = np.arange(plateau.size).reshape(plateau.shape)
print(((plateau == largest) & (plateau > 0)).sum(), ((where == own) & (plateau > 0)).sum())
