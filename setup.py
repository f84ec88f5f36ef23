"""Build fastpool/_kernels.pyx once per instruction set; everything else is in pyproject.toml.

FASTPOOL_CFLAGS holds flags that come after all others (CFLAGS come before, so that -O1 there would
have no effect): ci/sanitize.sh gives the sanitizers' there. CC and LDFLAGS are setuptools' own.
Symbols stay: ci/check_vectorised.py reads them. Wheels are made without (LDFLAGS=-Wl,-s).
"""

import glob
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# The first runs on every machine of its architecture. The others are chosen at import by
# fastpool/_running/builds.py, which asks the processor for exactly these features.
BUILDS = {"": []}
TARGET = sysconfig.get_platform()  # what is compiled for: ci/aarch64.sh changes it
if TARGET.endswith(("x86_64", "amd64")) and not TARGET.startswith("macosx"):
    # (not on macOS: a universal2 build hands both architectures to one compiler call)
    BUILDS["_avx2"] = ["-mavx2", "-mbmi2"]
    BUILDS["_avx512"] = [
        *("-mavx2", "-mbmi2"),
        *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
    ]
SOURCES = [
    *sorted(glob.glob("fastpool/kernels/**/*.pxi", recursive=True)),
    *sorted(glob.glob("fastpool/kernels/**/*.h", recursive=True)),
    *("fastpool/include/fastpool.h", "fastpool/__init__.pxd"),
]
LAST_FLAGS = shlex.split(os.environ.get("FASTPOOL_CFLAGS", ""))

if sys.platform == "win32":
    # clang-cl: MSVC has no vector extensions, and gcc's AVX spills to a stack of 16-byte alignment.
    CLANG = shutil.which("clang-cl")
    if CLANG is None:
        sys.exit("fastpool is compiled by clang-cl, which is missing (winget install LLVM.LLVM)")
    command = [CLANG, "/clang:-print-resource-dir"]
    resources = subprocess.check_output(command, text=True).strip()
    COMPILE = ["/clang:-O3", "/openmp"]
    # OpenMP's runtime, and what __builtin_cpu_supports calls.
    LINK = [
        f"/LIBPATH:{os.path.dirname(os.path.dirname(CLANG))}\\lib",
        f"{resources}\\lib\\windows\\clang_rt.builtins-x86_64.lib",
    ]
elif sys.platform == "darwin":
    # Apple's clang reads OpenMP's pragmas; CPPFLAGS and LDFLAGS say where LLVM's runtime is.
    COMPILE = ["-O3", "-g0", "-Xpreprocessor", "-fopenmp"]
    LINK = ["-lomp"]
else:
    COMPILE = ["-O3", "-g0", "-fopenmp"]
    LINK = ["-fopenmp"]


def extensions():
    for suffix, flags in BUILDS.items():
        yield Extension(
            f"fastpool._kernels{suffix}",
            ["fastpool/_kernels.pyx"],
            depends=SOURCES,
            include_dirs=["fastpool", "fastpool/include"],
            # What the sources call inline has to be: vectors would go through memory otherwise.
            define_macros=[("CYTHON_INLINE", "inline __attribute__((always_inline))")],
            extra_compile_args=[*COMPILE, *flags, *LAST_FLAGS],
            extra_link_args=LINK,
        )


class BuildParallel(build_ext):
    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        for extension, suffix in zip(self.extensions, BUILDS, strict=True):
            # Only here: metadata and source distributions need no C. One folder each: the name of
            # the C file comes from the pyx, which they share.
            made = cythonize([extension], build_dir=f"build/cython{suffix}", quiet=True)
            extension.sources = made[0].sources
        if sys.platform == "win32":
            self.compiler.initialize()
            self.compiler.cc = CLANG  # which takes the options of MSVC's cl
        super().build_extensions()


setup(ext_modules=list(extensions()), cmdclass={"build_ext": BuildParallel})
