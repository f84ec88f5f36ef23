"""Build fastpool/_kernels.pyx once per instruction set, and write the stubs. All other settings are
in pyproject.toml.

FASTPOOL_CFLAGS holds flags that come after all others; ci/sanitize.sh passes the sanitizers' there.
(CFLAGS come before, so -O1 there would have no effect.) FASTPOOL_OPENMP=0 builds without OpenMP:
every call runs on one thread. setuptools reads CC and LDFLAGS. Symbols are kept, because
ci/check_vectorised.py reads them. Wheels are built without (LDFLAGS=-Wl,-s).
"""

import glob
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

BUILDS = runpy.run_path("fastpool/_running/instruction_sets.py")["BUILDS"]
TARGET = sysconfig.get_platform()  # the platform to compile for; ci/cross.sh changes it
if TARGET == "linux-x86_64" and sys.maxsize < 2**32:
    TARGET = "linux-i686"  # Python of 32 bits on a kernel of 64
if not TARGET.endswith(("x86_64", "amd64")) or TARGET.startswith("macosx"):
    # On macOS, a universal2 build passes both architectures to one compiler call.
    BUILDS = {"baseline": BUILDS["baseline"]}
SOURCES = [
    *sorted(glob.glob("fastpool/kernels/**/*.pxi", recursive=True)),
    *sorted(glob.glob("fastpool/kernels/**/*.h", recursive=True)),
    *("fastpool/include/fastpool.h", "fastpool/__init__.pxd", "setup.py"),
]
# A product and a sum are rounded separately: means rely on the rounding of each operation. Integers
# wrap. (Python's own flags have this and NDEBUG, but setuptools drops them if CFLAGS is set.)
EXACT = ["-ffp-contract=off", "-fwrapv"]
LAST_FLAGS = shlex.split(os.environ.get("FASTPOOL_CFLAGS", ""))
OPENMP = os.environ.get("FASTPOOL_OPENMP", "1")
if OPENMP not in ("0", "1"):
    sys.exit(f"FASTPOOL_OPENMP must be 0 (a build without OpenMP) or 1, got {OPENMP!r}")
OPENMP = OPENMP == "1"

if sys.platform == "win32":
    # clang-cl: MSVC has no vector extensions, and gcc's AVX spills to a stack of 16-byte alignment.
    CLANG = shutil.which("clang-cl")
    if CLANG is None:
        sys.exit("fastpool is compiled by clang-cl, which is missing (winget install LLVM.LLVM)")
    command = [CLANG, "/clang:-print-resource-dir"]
    resources = subprocess.check_output(command, text=True).strip()
    COMPILE = [f"/clang:{flag}" for flag in ("-O3", *EXACT)]
    LINK = [f"{resources}\\lib\\windows\\clang_rt.builtins-x86_64.lib"]  # __builtin_cpu_supports
    COMPILE_OPENMP = ["/openmp"]
    LINK_OPENMP = [f"/LIBPATH:{os.path.dirname(os.path.dirname(CLANG))}\\lib"]
else:
    COMPILE, LINK = ["-O3", "-g0", *EXACT], []
    COMPILE_OPENMP = LINK_OPENMP = ["-fopenmp"]
    if sys.platform == "darwin":
        # Apple's clang reads OpenMP's pragmas; CPPFLAGS and LDFLAGS say where LLVM's runtime is.
        COMPILE_OPENMP, LINK_OPENMP = ["-Xpreprocessor", "-fopenmp"], ["-lomp"]
if re.fullmatch("linux-i[3-6]86", TARGET):
    COMPILE += ["-msse2", "-mfpmath=sse"]  # the x87 unit rounds to other precisions
if TARGET.startswith("emscripten"):
    COMPILE += ["-msimd128"]  # Pyodide's Python; every engine of today has these vectors
if OPENMP:
    COMPILE, LINK = [*COMPILE, *COMPILE_OPENMP], [*LINK, *LINK_OPENMP]

# The kernels use vectors, so what gcc would vectorise is mostly the loops around them, and they say
# what is to be inlined. Without more of both, and without copies of functions for some arguments, a
# build has a third less code, compiles in half the time and is as fast (docs/measurements.md).
GCC_ONLY = ["-fno-tree-loop-vectorize", "-fno-inline-functions", "-fno-ipa-cp-clone"]
# Copies of loops, one for each value of a condition, are 5 % of the code and gain 1 % of the time.
# A short loop that begins in the middle of 32 bytes takes up to 15 % longer (Zen 3).
GCC_ONLY += ["-fno-unswitch-loops", "-falign-loops=32"]
CLANG_ONLY = ["-Wno-unused-function"]  # Cython defines functions for all modules
# fastpool's functions that are declared inline must be inlined, or vectors would go through memory.
# Cython's own functions are inlined as the compiler likes.
INLINE = "inline __attribute__((always_inline))"
INLINED = re.compile(r"^static CYTHON_INLINE (?=[^(\n]*__pyx_f_8fastpool_)", re.MULTILINE)


def extensions():
    for suffix, features in BUILDS.values():
        yield Extension(
            f"fastpool._kernels{suffix}",
            ["fastpool/_kernels.pyx"],
            depends=SOURCES,
            include_dirs=["fastpool", "fastpool/include"],
            define_macros=[("NDEBUG", None)],
            extra_compile_args=[*COMPILE, *(f"-m{name}" for name in features), *LAST_FLAGS],
            extra_link_args=LINK,
        )


# The kernels inside onnxruntime: a module that is also a library of custom operators.
RUNTIME = Extension(
    "fastpool.onnx._runtime",
    ["fastpool/onnx/_runtime.c"],
    depends=["fastpool/include/fastpool.h", "fastpool/onnx/_ort.h", "setup.py"],
    include_dirs=["fastpool/include"],
    define_macros=[("NDEBUG", None)],
    extra_compile_args=[*COMPILE, *LAST_FLAGS],
    extra_link_args=LINK,
)


def translate(extension):
    """Translate the source to C, once for all builds, and return the path of the C file."""
    (made,) = cythonize([extension], build_dir="build/cython", quiet=True)
    with open(made.sources[0]) as file:
        text = INLINED.sub(f"static {INLINE} ", file.read())
    path = os.path.join("build", "cython", "_kernels.c")
    write(path, text)
    return path


def wrap(source, suffix):
    """Write a C file that compiles the translated source under the name of a build.

    It names what else decides the result, so that other flags build again.
    """
    path = os.path.join("build", "cython", f"_kernels{suffix or '_baseline'}.c")
    text = f"/* OpenMP: {OPENMP}, FASTPOOL_CFLAGS: {' '.join(LAST_FLAGS).replace('*', '')} */\n"
    text += f"#define PyInit__kernels PyInit__kernels{suffix}\n" if suffix else ""
    text += f'#include "{os.path.relpath(source, os.path.dirname(path))}"\n'.replace("\\", "/")
    write(path, text)
    return path


def write(path, text):
    """Write a file, unless it has this text: what depends on it would be built again."""
    if not os.path.exists(path) or open(path).read() != text:
        with open(path, "w") as file:
            file.write(text)


def is_gcc(compiler):
    """Return whether setuptools' compiler is gcc, not clang, which refuses gcc's options."""
    command = [*compiler.compiler_so, "-dM", "-E", "-x", "c", os.devnull]
    macros = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return "__GNUC__" in macros and "__clang__" not in macros


class BuildParallel(build_ext):
    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        # Translate only here: metadata and source distributions need no C.
        kernels = self.extensions[:-1]
        print(f"fastpool: building {len(kernels)} times, some minutes", flush=True)
        source = translate(kernels[-1])
        options = []
        if self.compiler.compiler_type == "unix":
            options = GCC_ONLY if is_gcc(self.compiler) else CLANG_ONLY
        for extension, (suffix, _) in zip(kernels, BUILDS.values(), strict=True):
            extension.sources = [wrap(source, suffix)]
            extension.depends = [*extension.depends, source]
            extension.extra_compile_args[:0] = options
        if sys.platform == "win32":
            self.compiler.initialize()
            self.compiler.cc = CLANG  # it takes the options of MSVC's cl
        super().build_extensions()

    def build_extension(self, extension):
        start = time.monotonic()
        super().build_extension(extension)
        seconds = time.monotonic() - start
        print(f"fastpool: built {extension.name} in {seconds:.0f} s", flush=True)


VERSION_FILE = "fastpool/_version.py"


def version():
    """Return the version. If this folder is a checkout, a development version has the commit."""
    found = runpy.run_path(VERSION_FILE)["__version__"]
    if "dev" in found and "+" not in found and os.path.exists(".git"):
        command = ["git", "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
        try:
            commit = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError):
            return found
        found += f"+g{commit.strip().replace('-', '.')}"
    return found


def description(version):
    """Return the README with absolute addresses. Package indexes have no pages of a checkout."""
    with open("README.md", encoding="utf-8") as file:
        text = file.read()
    with open("pyproject.toml", "rb") as file:
        repository = tomllib.load(file)["project"].get("urls", {}).get("Repository")
    if repository is None:
        return text
    release, _, commit = version.partition("+g")
    state = commit.partition(".")[0] or ("HEAD" if "dev" in release else f"v{release}")
    raw, page = (f"{repository}/{kind}/{state}/" for kind in ("raw", "blob"))
    text = re.sub(r'((?:src|srcset)="|!\[[^]]*\]\()(?!\w+:)', rf"\1{raw}", text)
    return re.sub(r"(\]\()(?!\w+:|#)", rf"\1{page}", text)


def write_version(folder):
    """Write the version with the commit into a copy of the sources, which may be a link to one."""
    path = os.path.join(folder, VERSION_FILE)
    with open(path) as file:
        text = file.read()
    os.remove(path)
    with open(path, "w") as file:
        file.write(re.sub('= ".*"', f'= "{version()}"', text))


class BuildWithVersion(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            write_version(self.build_lib)


class SdistWithVersion(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        write_version(base_dir)


runpy.run_path("stubs/write.py", run_name="__main__")
setup(
    version=version(),
    long_description=description(version()),
    long_description_content_type="text/markdown",
    ext_modules=[*extensions(), RUNTIME],
    cmdclass={"build_ext": BuildParallel, "build_py": BuildWithVersion, "sdist": SdistWithVersion},
)
