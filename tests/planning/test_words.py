"""A word that a function does not have is refused by an error that names the argument meant."""

import inspect
import re

import numpy as np
import pytest

import fastpool
from fastpool._planning import words

X = np.zeros((1, 1, 6, 6), np.float32)
# The first arguments of each public function that has some, up to the window.
FIRST = {
    **dict.fromkeys([f"{name}_pool" for name in ("max", "min", "avg", "lp")], (X, 2)),
    **dict.fromkeys([f"adaptive_{name}_pool" for name in ("max", "min", "avg")], (X, 2)),
    **dict.fromkeys([f"global_{name}_pool" for name in ("max", "min", "avg", "lp")], (X,)),
    "max_unpool": (X, np.zeros(X.shape, np.int64), 2),
}
FIRST |= {f"plan_{name}": (X.shape, "float32", *given[1:]) for name, given in FIRST.items()}
FIRST["plan_max_unpool"] = (X.shape, 2)
FIRST |= {"block_reduce": (X, 2, "max"), "pyramid": (X, 1)}
# The words that new users wrote, and what each may be called here.
USERS = {
    "kernel_size": ("kernel_shape", "block_size"),
    "pool_size": ("kernel_shape", "output_size"),
    "size": ("kernel_shape", "output_size", "block_size"),
    "stride": ("strides",),
    "padding": ("pads",),
    "dilation": ("dilations",),
    "axis": ("layout",),
}


def refusal(function, *arguments, **unknown):
    with pytest.raises(TypeError) as raised:
        function(*arguments, **unknown)
    return str(raised.value)


def test_every_public_function_is_tried():
    functions = {name for name in fastpool.__all__ if inspect.isfunction(getattr(fastpool, name))}
    assert functions - {"get_include", "set_plan_cache_limit", "show_config"} == {*FIRST}


@pytest.mark.parametrize("name", FIRST)
def test_words_of_other_libraries(name):
    function = getattr(fastpool, name)
    known = inspect.signature(function).parameters
    for word, meant in {**words._MEANT, **USERS}.items():
        if word in known:
            continue
        text = refusal(function, *FIRST[name], **{word: 2})
        assert text.startswith(f"{name}() got an unexpected keyword argument {word!r}")
        if word == "result_dtype" and "input_shape" in known:
            meant = ()  # its `dtype` is the type of the array
        found = re.findall(rf"write (\w+) for {word}\b", text)
        assert found[:1] == [argument for argument in meant if argument in known][:1]


@pytest.mark.parametrize("name", FIRST)
def test_calls_without_a_window(name):
    """Python would say that kernel_shape is missing, and not what kernel_size is."""
    function, first = getattr(fastpool, name), FIRST[name]
    window = [*inspect.signature(function).parameters][len(first) - 1]
    if window not in ("kernel_shape", "output_size"):
        return
    text = refusal(function, *first[:-1], size=2, stride=2)
    assert f"write {window} for size" in text
    assert ("write strides for stride" in text) == (window == "kernel_shape")
    assert refusal(function, *first[:-1]).startswith(f"{window}: expected an int")
    assert "got nothing" in refusal(function, *first[:-1])


@pytest.mark.parametrize("name", FIRST)
def test_signatures_stay_explicit(name):
    function = getattr(fastpool, name)
    parameters = inspect.signature(function).parameters.values()
    assert {p.kind for p in parameters} <= {
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    }
    required = [p.name for p in parameters if p.default is p.empty]
    assert len(required) == len(FIRST[name])
    assert "unknown" not in inspect.signature(function).parameters
    assert "unknown" not in inspect.getdoc(function)


@pytest.mark.parametrize("name", FIRST)
def test_too_many_arguments_without_a_keyword(name):
    """torch's ``max_pool2d(x, 2, 2)``: the third one is a stride."""
    function = getattr(fastpool, name)
    parameters = inspect.signature(function).parameters.values()
    few = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    first = next(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    text = refusal(function, *[2] * len(few), 5, 6)
    assert text == (
        f"{name}() takes {len(few)} argument{'s' * (len(few) > 1)} without a keyword, "
        f"got {len(few) + 2}; {'there is no window' if 'global' in name else f'write {first}=5'}"
    )


def test_what_is_said_of_a_word():
    def said(function=fastpool.max_pool, **unknown):
        return refusal(function, X, **unknown).partition("; ")[2]

    assert said(kernel_size=3, stride=2, padding=1) == (
        "write kernel_shape for kernel_size; write strides for stride; write pads for padding"
    )
    assert "write auto_pad for padding" in said(padding="same")
    assert "write layout for axis, which names all axes" in said(axis=(2, 3))
    assert said(mode="reflect") == "write border for mode"
    assert said(origin=1).startswith("origin has no counterpart")
    # Misspelt words, and words like no argument.
    assert said(kernal_shape=3) == "write kernel_shape for kernal_shape"
    assert said(ceil_mod=1) == "write ceil_mode for ceil_mod"
    assert said(colour=1).startswith("expected x, kernel_shape, strides, ")
    assert said(**{"x" * 10**6: 1}).startswith("expected x, kernel_shape, strides, ")
    # An argument of another function has no meaning here.
    assert said(fastpool.global_max_pool, strides=2).startswith("expected x, layout, keepdims, ")


def test_words_of_calls_that_are_cached():
    fastpool.max_pool(X, 2)
    for _ in range(2):
        assert "write strides for stride" in refusal(fastpool.max_pool, X, 2, stride=2)


@pytest.mark.parametrize(
    "name, meant",
    [
        ("max_pool2d", "max_pool"),
        ("AdaptiveAvgPool3d", "adaptive_avg_pool"),
        ("average_pool", "avg_pool"),
        ("maximum_filter", "max_pool"),
        ("max_unpol", "max_unpool"),
        ("minimum_filter", "min_pool"),
        ("downscale_local_mean", "block_reduce"),
        ("rank_filter", None),
        ("x" * 10_000, None),
        ("_pool", None),
    ],
)
def test_functions_of_other_libraries(name, meant):
    with pytest.raises(AttributeError) as raised:
        getattr(fastpool, name)
    assert str(raised.value).partition("; ")[2] == (f"write fastpool.{meant}" if meant else "")
