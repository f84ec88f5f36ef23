from setuptools import Extension, setup

import fastpool

setup(
    name="thumbnails",
    ext_modules=[
        Extension("thumbnails", ["thumbnails.cpp"], include_dirs=[fastpool.get_include()])
    ],
)
