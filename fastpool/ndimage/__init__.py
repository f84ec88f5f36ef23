"""Filters and grey morphology with the names, arguments and positions of scipy.ndimage.

Windows are boxes. Results are those of SciPy, except where these are wrong: NaN propagates, and
integers are exact. The page docs/ndimage.md lists the differences.
"""

from ._filters import (
    maximum_filter,
    maximum_filter1d,
    minimum_filter,
    minimum_filter1d,
    uniform_filter,
    uniform_filter1d,
)
from ._morphology import (
    black_tophat,
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    morphological_gradient,
    white_tophat,
)

__all__ = [
    "black_tophat",
    "grey_closing",
    "grey_dilation",
    "grey_erosion",
    "grey_opening",
    "maximum_filter",
    "maximum_filter1d",
    "minimum_filter",
    "minimum_filter1d",
    "morphological_gradient",
    "uniform_filter",
    "uniform_filter1d",
    "white_tophat",
]


def __getattr__(name):
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; scipy.ndimage may have it"
    )
