"""The builds of the kernels in one table, which setup.py reads before anything is compiled.

Each build is (suffix of the compiled module, features). It is compiled with ``-m`` and each
feature, and chosen at import if the processor has them all. The best build comes first. The last
one runs on every machine of its architecture.
"""

from typing import NamedTuple

BUILDS = {
    "avx512": (
        "_avx512",
        ("avx2", "bmi2", "f16c", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"),
    ),
    "avx2": ("_avx2", ("avx2", "bmi2", "f16c", "fma")),
    "baseline": ("", ()),
}


class Build(NamedTuple):
    """The properties of a build on which the choice of a strategy depends."""

    vector_bytes: int
    masks: bool
