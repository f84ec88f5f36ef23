import os

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = os.environ["FASTPOOL_SOURCE"]  # the folder that holds kernels/

setup(
    name="counting",
    ext_modules=cythonize(
        [
            Extension(
                "counting",
                ["counting.pyx"],
                include_dirs=[SOURCE, os.path.join(SOURCE, "include")],
                define_macros=[("CYTHON_INLINE", "inline __attribute__((always_inline))")],
                extra_compile_args=["-fopenmp"],
                extra_link_args=["-fopenmp"],
            )
        ],
        include_path=[SOURCE],
    ),
)
