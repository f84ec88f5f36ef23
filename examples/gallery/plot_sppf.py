"""
SPPF: three poolings that are three sizes
=========================================

YOLO's SPPF layer pools a feature map with 5 x 5 windows three times in a row, and stacks all four
maps. Repeated poolings equal one pooling with a larger window: 5, then 9, then 13.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage

import fastpool

# %%
# A feature map: edges of a photograph in 12 directions, 40 x 60.

gray = skimage.transform.resize(skimage.color.rgb2gray(skimage.data.coffee()), (40, 60))
down, right = np.gradient(gray)
angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)[:, None, None]
features = np.maximum(np.cos(angles) * right + np.sin(angles) * down, 0).astype(np.float32)[None]
print(features.shape)

# %%
# All four maps go into one array. `out=` takes slices of it, so nothing is concatenated.

channels = features.shape[1]
stacked = np.empty((1, 4 * channels, 40, 60), np.float32)
stacked[:, :channels] = features
plan = fastpool.plan_max_pool(features.shape, features.dtype, 5, pads=2)
for step in range(3):
    source = stacked[:, step * channels : (step + 1) * channels]
    plan(source, out=stacked[:, (step + 1) * channels : (step + 2) * channels])

# %%
# Single poolings with larger windows (SPP, its predecessor) give equal maps:

for step, size in enumerate((5, 9, 13), start=1):
    at_once = fastpool.max_pool(features, size, pads=size // 2)
    print(size, np.array_equal(stacked[:, step * channels : (step + 1) * channels], at_once))

# %%

titles = ["features", "5 x 5", "9 x 9", "13 x 13"]
figure, grid = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
for step, (axes, title) in enumerate(zip(grid.flat, titles, strict=True)):
    axes.imshow(stacked[0, step * channels + 3], cmap="inferno", vmin=0, vmax=features.max())
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
plt.show()
