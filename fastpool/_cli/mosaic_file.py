"""Write a photograph of any size, made of photographs: real data that fills a disk.

The pictures come from scikit-image's wheel; nothing is downloaded. The file is written one row of
pictures at a time.
"""

import numpy as np
import skimage.data
from PIL import Image, ImageOps

from ..files import replacing

# The large picture is the first of these.
PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket")
CELL = 100
# The contrast of small pictures; their means become the colours of the large picture.
CONTRAST = 0.6


def write(path, size, progress):
    """Write a uint8 array of shape (size, size, 3) to a .npy file; `progress(done, rows)`."""
    photographs = [Image.fromarray(getattr(skimage.data, name)()) for name in PHOTOGRAPHS]
    small = [np.asarray(ImageOps.fit(photo, (CELL, CELL)), np.float32) for photo in photographs]
    pictures = np.stack([view for picture in small for view in (picture, picture[:, ::-1])])
    pictures = CONTRAST * (pictures - pictures.mean(axis=(1, 2), keepdims=True))
    pictures = pictures.astype(np.int16)
    count = -(-size // CELL)
    colours = np.asarray(ImageOps.fit(photographs[0], (count, count)), np.int16)
    rng = np.random.default_rng(0)

    header = {"descr": "|u1", "fortran_order": False, "shape": (size, size, 3)}
    with replacing(target=path) as new, open(new["target"], "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for row, colour in enumerate(colours):
            progress(row * CELL, size)
            cells = pictures[rng.integers(len(pictures), size=count)] + colour[:, None, None]
            cells = np.clip(cells, 0, 255).astype(np.uint8)
            band = cells.swapaxes(0, 1).reshape(CELL, count * CELL, 3)
            file.write(np.ascontiguousarray(band[: size - row * CELL, :size]))
        progress(size, size)
