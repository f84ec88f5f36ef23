from Cython.Build import cythonize
from setuptools import Extension, setup

import fastpool

setup(
    name="peaks",
    ext_modules=cythonize(
        [
            Extension(name, [f"{name}.pyx"], include_dirs=[fastpool.get_include()])
            for name in ("peaks", "driver")
        ],
    ),
)
