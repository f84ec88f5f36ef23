"""replace_pooling of fastpool.torch swaps the modules that fastpool runs faster."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import fastpool.torch as ft  # noqa: E402


def layers():
    return nn.Sequential(
        nn.MaxPool2d(3, 1, 1),
        nn.MaxPool2d(7, 1, 3),
        nn.AvgPool2d(3, 1, 1),
        nn.AvgPool2d(5, 1, 2),
        nn.AdaptiveAvgPool2d((None, 16)),
        nn.LPPool2d(2, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.AdaptiveAvgPool2d((1, 1)),
    )


X = torch.rand(1, 2, 16, 16)
OURS = "fastpool.max_pool", "fastpool.avg_pool", "fastpool.adaptive_avg_pool", "fastpool.lp_pool"


def count_in_graph(model):
    """Return how many of fastpool's operators torch.compile finds in a model."""
    found = []

    def backend(graph, _):
        found.extend(str(n.target).removesuffix(".default") for n in graph.graph.nodes)
        return graph

    compiled = torch.compile(model, backend=backend, fullgraph=True)
    with torch.inference_mode():
        torch.testing.assert_close(compiled(X), model(X))
    return sum(found.count(name) for name in OURS)


def test_switch():
    for select, swapped in (
        ("faster", range(5)),
        (None, range(5)),
        ("all", range(8)),
        ("none", ()),
        (lambda module: isinstance(module, nn.LPPool2d), [5]),
    ):
        model = layers()
        replaced = ft.replace_pooling(model, select=select)
        assert list(replaced.swapped) == list(map(str, swapped))
        assert len(replaced.swapped) + len(replaced.left) == len(model)
        for name, module in model.named_children():
            assert (type(module).__module__ == "fastpool.torch") == (name in replaced.swapped)
        torch.testing.assert_close(model(X), layers()(X))
    for wrong, error in (("fast", ValueError), (1, TypeError)):
        with pytest.raises(error, match="^select: expected "):
            ft.replace_pooling(layers(), select=wrong)


def test_reasons():
    replaced = ft.replace_pooling(layers())
    assert replaced.explain() == str(replaced)
    assert replaced.explain().splitlines()[0] == "5 swapped, 3 left"
    assert replaced.left == {
        "5": "torch is faster",
        "6": "torch is faster on means of whole planes",
        "7": "torch is faster on means of whole planes",
    }
    for select, reason in (("none", 'select="none"'), (lambda _: False, "not selected")):
        assert set(ft.replace_pooling(layers(), select=select).left.values()) == {reason}


def test_a_second_call_gives_fastpool_all():
    model = layers()
    model.again = model[0]
    ft.replace_pooling(model)
    assert {module.select for module in model if isinstance(module, ft.MaxPool2d)} == {"faster"}
    assert not ft.replace_pooling(model).swapped
    replaced = ft.replace_pooling(model, select="all")
    assert len(replaced.swapped) == len(model) and not replaced.left
    assert {module.select for module in model} == {"all"}


def test_graphs_of_compile_have_short_windows_of_torch():
    model = layers()
    ft.replace_pooling(model)
    assert count_in_graph(model) == 1
    assert count_in_graph(copy.deepcopy(model)) == 1
    everything = layers()
    ft.replace_pooling(everything, select="all")
    assert count_in_graph(everything) == 8
    exported = torch.export.export(model, (X,)).graph.nodes
    assert not any(str(node.target).startswith("fastpool.") for node in exported)
    window = nn.Sequential(nn.MaxPool2d(2, return_indices=True))
    indices = torch.compile(copy.deepcopy(window), backend="eager")(X)[1]
    ft.replace_pooling(window)
    assert torch.equal(torch.compile(window, backend="eager")(X)[1], indices)


def test_short_means_of_channels_last_tensors():
    """torch rounds the sum after each addition, so that the results tell who computed them."""
    x = torch.full((1, 2, 3, 3), 2.0**-24)
    x[..., 0, 0] = 1
    last = x.to(memory_format=torch.channels_last)
    exact, rounded = (1 + 8 * 2.0**-24) / 9, 1 / 9
    short, adaptive, own = nn.AvgPool2d(3), nn.AdaptiveAvgPool2d((1, 3)), ft.AvgPool2d(3)
    assert ft.replace_pooling(nn.ModuleList([short, adaptive])).left == {}
    assert type(short) is ft.AvgPool2d and short.select == "faster" and own.select == "all"
    assert (short(x) == torch.tensor(exact)).all() and (own(last) == torch.tensor(exact)).all()
    assert (short(last) == torch.tensor(rounded)).all()
    assert torch.equal(adaptive(last), nn.AdaptiveAvgPool2d((1, 3))(last))
    short.select = "all"
    assert (short(last) == torch.tensor(exact)).all()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int32])
def test_integers_are_fastpools(dtype):
    """torch has no kernels for some of them, by operator and memory format."""
    x = torch.ones(1, 4, 6, 6).to(dtype).to(memory_format=torch.channels_last)
    model = nn.Sequential(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((1, 3)), nn.MaxPool2d((1, 2)))
    ft.replace_pooling(model)
    assert torch.equal(model(x), torch.ones(1, 4, 1, 1).to(dtype))
    assert torch.equal(torch.compile(model, backend="eager")(x), model(x))
