"""
Pool and unpool as SegNet does
==============================

SegNet and other encoders and decoders keep the position of each maximum, and put the decoder's
values back there. So outlines keep their shape, which the small picture has lost.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.ndimage
import skimage

import fastpool

# %%
# Three poolings of 2 x 2, as in the encoder, keep the positions.

photograph = skimage.data.camera()[30:286, 100:420].astype(np.float32) / 255
window = {"kernel_shape": 2, "strides": 2, "layout": "HW"}

levels = []
small = photograph
for _ in range(3):
    shape = small.shape
    small, indices = fastpool.max_pool(small, **window, return_indices=True)
    levels.append((shape, indices))
print(photograph.shape, "->", small.shape)

# %%
# The decoder goes back through the levels. Between them SegNet has trained filters that fill the
# gaps. Here a gap gets the blurred values around it.


def unpool_and_fill(x, indices, shape):
    values, there = (
        fastpool.max_unpool(part, indices, **window, output_shape=shape)
        for part in (x, np.ones_like(x))
    )
    blurred, weight = (scipy.ndimage.gaussian_filter(part, 0.7) for part in (values, there))
    return values, blurred / np.maximum(weight, 1e-6)


decoded, sparse = small, []
for shape, indices in reversed(levels):
    values, decoded = unpool_and_fill(decoded, indices, shape)
    sparse.append(values)

# %%
# The other picture is made of the same 32 x 40 maxima without their positions: each becomes a block
# of 8 x 8. The mean error against the photograph:

blocks = small.repeat(8, axis=0).repeat(8, axis=1)
for name, picture in (("with positions", decoded), ("blocks", blocks)):
    print(f"{name}: {abs(picture - photograph).mean():.3f}")

# %%

pictures = {
    "256 x 320": photograph,
    "pooled to 32 x 40": small,
    "unpooled once: 64 x 80": sparse[0],
    "with positions: 256 x 320": decoded,
    "without: blocks": blocks,
    "the last unpooling, close by": sparse[-1][60:92, 90:130],
}
figure, grid = plt.subplots(2, 3, figsize=(8, 4.8), layout="constrained")
for axes, (title, picture) in zip(grid.flat, pictures.items(), strict=True):
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
plt.show()

# %%
# No maximum was lost: pooling the unpooled picture gives the maxima again.

print(np.array_equal(fastpool.max_pool(sparse[0], **window), small))
