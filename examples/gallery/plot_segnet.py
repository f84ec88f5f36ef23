"""
Pool and unpool as SegNet does
==============================

SegNet and other encoders and decoders remember where each maximum came from, and put what the
decoder computes back at that place. Edges stay where they were, to the pixel.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage

import fastpool

# %%
# Three poolings of 2 x 2, as in the encoder. The positions are kept.

photograph = skimage.data.chelsea()[16:272, 90:410].astype(np.float32) / 255  # 256 x 320 x 3
window = {"kernel_shape": 2, "strides": 2, "layout": "HWC"}

levels = []
y = photograph
for _ in range(3):
    shape = y.shape
    y, indices = fastpool.max_pool(y, **window, return_indices=True)
    levels.append((shape, indices))
print(photograph.shape, "->", y.shape)

# %%
# The decoder goes the same way back. Between its steps SegNet has trained filters that fill the
# gaps; here each gap takes the blurred values around it.


def filled(sparse):
    def blur(x):
        return skimage.filters.gaussian(x, 1.2, channel_axis=-1)

    there = (sparse != 0).astype(np.float32)
    return (blur(sparse) / np.maximum(blur(there), 1e-6)).astype(np.float32)


first_step = None
z = y
for shape, indices in reversed(levels):
    unpooled = fastpool.max_unpool(z, indices, **window, output_shape=shape)
    first_step = unpooled if first_step is None else first_step
    z = filled(unpooled)

# %%
# Beside it the same 32 x 40 maxima without their positions: every one a block of 8 x 8.

blocks = y.repeat(8, axis=0).repeat(8, axis=1)
error = {"with positions": abs(z - photograph).mean(), "blocks": abs(blocks - photograph).mean()}
print({name: f"{value:.3f}" for name, value in error.items()})

# %%

pictures = {
    "256 x 320": photograph,
    "pooled to 32 x 40": y,
    "unpooled once: 64 x 80": first_step,
    "unpooled to 256 x 320\nat the positions": z,
    "blocks": blocks,
}
figure, grid = plt.subplots(2, 3, figsize=(8, 5.2), layout="constrained")
for axes, (title, picture) in zip(grid.flat, pictures.items(), strict=False):
    axes.imshow(picture.clip(0, 1), interpolation="nearest")
    axes.set_title(title, fontsize=10)
last = grid.flat[-1]
last.imshow(unpooled[100:132, 130:170].clip(0, 1), interpolation="nearest")
last.set_title("the last unpooling, close by", fontsize=10)
for axes in grid.flat:
    axes.set_axis_off()
plt.show()

# %%
# Nothing was lost where it counts: a pooling of the unpooled picture gives the maxima again.

again = fastpool.max_pool(first_step, **window)
print(np.array_equal(again, y))
