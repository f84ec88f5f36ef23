"""Fixtures: the packages in tests/external, built once against the installed fastpool."""

import os
import shutil

import pytest

from callers import build, load


@pytest.fixture(scope="session")
def c_package(tmp_path_factory):
    flags = "-O1 -std=c99 -Wall -Wextra"
    return build("c", tmp_path_factory.mktemp("external") / "c", flags)


@pytest.fixture(scope="session")
def cpp_package(tmp_path_factory):
    if shutil.which(os.environ.get("CXX", "c++").split()[0]) is None:
        pytest.skip("no C++ compiler is found")
    flags = "-O1 -std=c++11 -Wall -Wextra"
    return build("cpp", tmp_path_factory.mktemp("external") / "cpp", flags)


@pytest.fixture(scope="session")
def cython_package(tmp_path_factory):
    pytest.importorskip("Cython")
    return build("cython", tmp_path_factory.mktemp("external") / "cython", "-O0")[0]


@pytest.fixture(scope="session")
def driver(cython_package):
    return load(cython_package["driver"])
