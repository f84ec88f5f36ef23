from setuptools import Extension, setup

import fastpool

setup(
    name="images",
    ext_modules=[Extension("images", ["images.c"], include_dirs=[fastpool.get_include()])],
)
