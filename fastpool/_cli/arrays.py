"""Read and write arrays in .npz files and images, one by one."""

import zipfile
import zlib
from contextlib import ExitStack, contextmanager

import numpy as np

from ..files import open_regular
from .program import needing

# Modes of Pillow's images whose numbers have an order. Others are converted.
MODES = ("L", "LA", "RGB", "RGBA", "I", "F")


class Archive:
    """An .npz file open for reading: its names, and an array for each."""

    def __init__(self, argument, path):
        """Open the file. Errors about it name the argument too."""
        self.path = path
        with ExitStack() as stack:
            file = stack.enter_context(open_regular(argument, path))
            with self._its_errors():
                self._file = np.lib.npyio.NpzFile(file, own_fid=True)
            stack.pop_all()
        self.names = self._file.files

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def __getitem__(self, name):
        if name not in self.names:
            raise ValueError(f"{str(self.path)!r} has no {name!r}; it has {', '.join(self.names)}")
        with self._its_errors():
            array = self._file[name]
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{str(self.path)!r}: {name!r} is no array")
        return array

    @contextmanager
    def _its_errors(self):
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise ValueError(f"{str(self.path)!r} is no .npz file of arrays: {error}") from None


@contextmanager
def npz_writer(path):
    """Yield a function that writes a named array; numpy.savez needs all arrays at once."""
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:

        def write(name, array):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)

        yield write


def read_image(argument, path):
    """Return (array, layout)."""
    with needing("an image", "pillow", "PIL"):
        from PIL import Image, ImageOps
    with ExitStack() as stack:
        file = stack.enter_context(open_regular(argument, path))
        try:
            image = stack.enter_context(Image.open(file))
        except Image.UnidentifiedImageError:
            raise ValueError(f"{str(path)!r} is no .npy or .npz file, nor a known image") from None
        except Image.DecompressionBombError as error:
            raise ValueError(f"{str(path)!r}: {error}") from None
        if getattr(image, "n_frames", 1) > 1:
            count = image.n_frames
            raise ValueError(f"{str(path)!r}: expected one picture, or a .npy file, got {count}")
        ImageOps.exif_transpose(image, in_place=True)
        if image.mode == "1":
            image = image.convert("L")
        elif image.mode not in MODES and not image.mode.startswith("I;16"):
            image = image.convert("RGBA" if image.has_transparency_data else "RGB")
        x = np.array(image)
    return x, "HW" if x.ndim == 2 else "HWC"


def image_format(path):
    """Return Pillow's name for the image format of `path`."""
    with needing("an image", "pillow", "PIL"):
        from PIL import Image
    name = Image.registered_extensions().get(path.suffix.lower())
    if name not in Image.SAVE:
        raise ValueError(f"{str(path)!r}: expected a name that ends as .npy, .npz or an image's")
    return name


def write_image(path, format, array):
    """Write an image; if it cannot hold the array's numbers exactly, raise ValueError."""
    from PIL import Image

    try:
        image = Image.fromarray(array)
        seen = np.asarray(image)
        if (seen.dtype, seen.shape) != (array.dtype, array.shape):
            raise ValueError
        image.save(path, format)
    except (OSError, TypeError, ValueError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(f"a {format} image cannot hold {described(array)}") from None


def described(array):
    """Return the type and shape of an array as text."""
    return f"{array.dtype} {'x'.join(map(str, array.shape))}"
