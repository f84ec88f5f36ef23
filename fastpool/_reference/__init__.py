"""The slow twin: every pooling in plain arithmetic.

It is the specification in code and the oracle of the tests. It shares only the normalising of
attributes and the activations with the rest of the package. Extents, padding, windows, indices,
sums and roundings are computed here independently, one output position at a time.
"""

from .average import adaptive_avg_pool, avg_pool, global_avg_pool, qlinear_average_pool
from .blocks import block_reduce, pyramid
from .lp import global_lp_pool, lp_pool
from .maximum import (
    adaptive_max_pool,
    adaptive_min_pool,
    global_max_pool,
    global_min_pool,
    max_pool,
    max_unpool,
    min_pool,
)

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "adaptive_min_pool",
    "avg_pool",
    "block_reduce",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "global_min_pool",
    "lp_pool",
    "max_pool",
    "max_unpool",
    "min_pool",
    "pyramid",
    "qlinear_average_pool",
]
