from setuptools import Extension, setup

import fastpool

include_dirs = [fastpool.get_include()]
setup(
    name="images",
    ext_modules=[
        Extension("images", ["images.c"], include_dirs=include_dirs),
        Extension("means", ["means.c"], include_dirs=include_dirs),
    ],
)
