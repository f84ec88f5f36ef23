"""Build fastpool/_kernels.pyx once per instruction set; everything else is in pyproject.toml.

FASTPOOL_CFLAGS holds flags that come after all others (CFLAGS come before, so that -O1 there would
have no effect): ci/sanitize.sh gives the sanitizers' there. CC and LDFLAGS are setuptools' own.
"""

import os
import platform
import shlex
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# The first runs on every machine of its architecture. The others are chosen at import by
# fastpool/_dispatch.py, which asks the processor for exactly these features.
BUILDS = {"": []}
if platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "darwin":
    # (not on macOS: a universal2 build hands both architectures to one compiler call)
    BUILDS["_avx2"] = ["-mavx2", "-mbmi2"]
    BUILDS["_avx512"] = [
        *("-mavx2", "-mbmi2"),
        *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
    ]
SOURCES = ["_offsets.pxi", "_windows.pxi", "_small.pxi", "_long.pxi", "_values.pxi"]
SOURCES += ["_taps.pxi", "_pairs.pxi", "_tasks.pxi", "_arrays.pxi", "_unpool.pxi", "_capi.pxi"]
HEADERS = ["_vector.h", "_keys.h", "_fences.h", "_threads.h", "include/fastpool.h", "__init__.pxd"]
LAST_FLAGS = shlex.split(os.environ.get("FASTPOOL_CFLAGS", ""))


def extensions():
    for suffix, flags in BUILDS.items():
        extension = Extension(
            f"fastpool._kernels{suffix}",
            ["fastpool/_kernels.pyx"],
            depends=[f"fastpool/{name}" for name in SOURCES + HEADERS],
            include_dirs=["fastpool", "fastpool/include"],
            # What the sources call inline has to be: vectors would go through memory otherwise.
            define_macros=[("CYTHON_INLINE", "inline __attribute__((always_inline))")],
            extra_compile_args=["-O3", "-g0", "-fopenmp", *flags, *LAST_FLAGS],
            extra_link_args=["-fopenmp"],
        )
        # One folder each: the name of the generated C file comes from the pyx, which they share.
        yield from cythonize([extension], build_dir=f"build/cython{suffix}", quiet=True)


class BuildParallel(build_ext):
    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()


setup(ext_modules=list(extensions()), cmdclass={"build_ext": BuildParallel})
