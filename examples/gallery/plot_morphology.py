"""
Morphology: the background of a page
====================================

A maximum over a window is a grey dilation, and a minimum is a grey erosion. Opening, closing and
gradients combine the two. They work on integers and masks without conversion.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.ndimage
import skimage

import fastpool


def dilation(x, size):
    """Return the maximum around every pixel; pixels outside the picture do not count."""
    return fastpool.max_pool(x, size, pads=size // 2, layout="HW")


def erosion(x, size):
    return fastpool.min_pool(x, size, pads=size // 2, layout="HW")


# %%
# A photographed page, uint8, is darker at its left. Closing (a dilation, then an erosion) with a
# window larger than any letter leaves only the paper.

page = skimage.data.page()
paper = erosion(dilation(page, 21), 21)
flat = (page.astype(np.float32) / paper).clip(0, 1)

# %%
# SciPy's dilation and scikit-image's closing give equal results. Both reflect the picture at its
# edges, which adds no new values to a window.

print(np.array_equal(dilation(page, 21), scipy.ndimage.grey_dilation(page, (21, 21))))
print(np.array_equal(paper, skimage.morphology.closing(page, np.ones((21, 21)))))

# %%
# A mask of the letters. Its outline is what a dilation adds to the mask.

letters = flat < 0.75
outline = dilation(letters, 3) & ~letters
coloured = np.ones((*page.shape, 3))
coloured[letters] = 0
coloured[outline] = (0.9, 0.6, 0)

figure, grid = plt.subplots(2, 2, figsize=(8, 4.6), layout="constrained")
pictures = {
    "page": page,
    "closed by 21 x 21: the paper": paper,
    "page / paper": flat,
    "letters and their outline, close by": coloured[5:80, :155],
}
for axes, (title, picture) in zip(grid.flat, pictures.items(), strict=True):
    axes.imshow(picture, cmap="gray")
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
plt.show()
