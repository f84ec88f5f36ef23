"""Models with fastpool's poolings are exported, converted and copied as torch's, and restored."""

import copy
import functools
import io
import pickle

import pytest

import cases

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from tensors import OPS, ignore_torchs_own_cleanup, images, same  # noqa: E402

# torch and the programs that convert its models warn of what they call themselves. Others are
# errors, above all a TracerWarning: that a trace does not hold for other tensors.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:The TorchScript type system:UserWarning"),
]

# ----------------------------------------------------------------------------------------- models


class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, 2, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        mean = nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False)
        self.skip = nn.Sequential(mean, nn.Conv2d(before, after, 1))

    def forward(self, x):
        y = self.second(self.norms[0](self.first(x)).relu())
        return (self.norms[1](y) + self.skip(x)).relu()


class ResNet(nn.Sequential):
    def __init__(self):
        stem = nn.Conv2d(3, 4, 7, 2, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        head = nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(6, 5)
        super().__init__(*stem, Block(4, 6), *head)


class Fire(nn.Module):
    def __init__(self, before, few, many):
        super().__init__()
        self.squeeze = nn.Conv2d(before, few, 1)
        self.one, self.three = nn.Conv2d(few, many, 1), nn.Conv2d(few, many, 3, padding=1)

    def forward(self, x):
        x = self.squeeze(x).relu()
        return torch.cat([self.one(x), self.three(x)], 1).relu()


class SqueezeNet(nn.Sequential):
    """With poolings of every other kind at its end."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 4, 3, 2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(4, 2, 3),
            nn.MaxPool2d(2, 1, dilation=2, ceil_mode=True),
            nn.AvgPool2d(3, 1, 1, count_include_pad=False),
            nn.Softplus(),  # the derivative of torch's LPPool is NaN at 0
            nn.LPPool2d(2, 2, 1),
            nn.AdaptiveMaxPool2d(1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.below = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.after = nn.Conv2d(8, 2, 3, padding=1)
        self.down, self.up = nn.MaxPool2d(2), nn.ConvTranspose2d(4, 4, 2, 2)

    def forward(self, x):
        x = self.before(x).relu()
        return self.after(torch.cat([x, self.up(self.below(self.down(x)).relu())], 1))


class SegNet(UNet):
    """A U-Net that unpools."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)

    def forward(self, x):
        x = self.before(x).relu()
        y, indices = self.down(x)
        return self.after(torch.cat([x, self.up(self.below(y).relu(), indices)], 1))


NETS = [ResNet, SqueezeNet, UNet, SegNet]
each_net = pytest.mark.parametrize("make", NETS, ids=lambda make: make.__name__)
X = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def both(make):
    """Return a model with torch's modules, and one that fastpool's replaced, all of them."""
    torch.manual_seed(0)
    model = make().eval()
    other = copy.deepcopy(model)
    assert not ft.replace_pooling(other, select="all").left
    return model, other


# ------------------------------------------------------------------------------------ exports


@functools.cache
def program(make):
    """The program that torch exports of a model with fastpool's poolings."""
    return torch.export.export(both(make)[1], (X,))


def saved(save, load, model):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    return load(file)


def scripted(model):
    script = torch.jit.script(model)
    assert "fastpool::" not in str(script.inlined_graph)
    return saved(torch.jit.save, torch.jit.load, script)


def traced(model):
    trace = torch.jit.trace(model, X)
    assert "fastpool::" not in str(trace.inlined_graph)
    return saved(torch.jit.save, torch.jit.load, trace)


def exported(model, strict=False):
    program = torch.export.export(model, (X,), strict=strict)
    assert "fastpool" not in str(program.graph)
    return saved(torch.export.save, torch.export.load, program).module()


EXPORTS = {
    "script": scripted,
    "trace": traced,
    "export": exported,
    "strict export": lambda model: exported(model, strict=True),
    "script of fx": lambda model: scripted(torch.fx.symbolic_trace(model)),
}


@ignore_torchs_own_cleanup
@pytest.mark.parametrize("how", EXPORTS)
@each_net
def test_exported_models_have_torchs_bits(make, how):
    """torch can neither trace nor script its own unpooling."""
    theirs, ours = both(make)
    kinds = list(map(type, ours.modules()))
    run = EXPORTS[how](ours)
    assert list(map(type, ours.modules())) == kinds  # (torch.jit.script may change modules)
    same(run(X), theirs(X))
    x, expected = (X.clone().requires_grad_() for _ in range(2))
    run(x).sum().backward()
    theirs(expected).sum().backward()
    # TorchScript has its own formulas of derivatives, those of powers rounded otherwise.
    torch.testing.assert_close(x.grad, expected.grad, rtol=1e-5, atol=1e-8)


def onnx_nodes(model, dynamo, of=None):
    """Export to ONNX, compare what onnxruntime gives with the model, return the types of nodes.

    `of` is an exported program of the model.
    """
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    if dynamo:
        pytest.importorskip("onnxscript")
        call = (of, ()) if of else (model, (X,))
        proto = torch.onnx.export(*call, dynamo=True, verbose=False).model_proto
    else:
        file = io.BytesIO()
        torch.onnx.export(model, (X,), file, dynamo=False)
        proto = onnx.load_from_string(file.getvalue())
    assert {node.domain for node in proto.graph.node} <= {"", "ai.onnx"}
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (y,) = session.run(None, {session.get_inputs()[0].name: X.numpy()})
    # onnxruntime adds the products of convolutions in another order.
    torch.testing.assert_close(torch.from_numpy(y), model(X), rtol=1e-5, atol=1e-6)
    return [node.op_type for node in proto.graph.node]


@functools.cache
def torchs_nodes(make, dynamo):
    return onnx_nodes(both(make)[0], dynamo)


@pytest.mark.parametrize("how", ["old", "dynamo", "program"])
@each_net
def test_onnx_has_the_nodes_that_it_has_of_torchs_modules(make, how):
    of = program(make) if how == "program" else None
    nodes = onnx_nodes(both(make)[1], how != "old", of)
    if make is SegNet and how == "old":  # torch's own unpooling cannot be exported
        assert {"MaxPool", "ScatterElements"} <= set(nodes)
    else:
        assert nodes == torchs_nodes(make, how != "old")
    assert any("Pool" in node for node in nodes)


@pytest.mark.parametrize("how", ["trace", "script", "program"])
@each_net
def test_openvino_converts(make, how):
    openvino = pytest.importorskip("openvino")
    if make is SegNet and how == "script":
        pytest.skip("OpenVINO does not convert a list of extents; torch cannot script its modules")
    _, model = both(make)
    if how == "program":
        converted = openvino.convert_model(program(make))
    elif how == "trace":
        converted = openvino.convert_model(model, example_input=X)
    else:
        converted = openvino.convert_model(model, input=list(X.shape))
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    (y,) = openvino.compile_model(converted, "CPU", exact)(X.numpy()).values()
    torch.testing.assert_close(torch.from_numpy(y), model(X), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------------------- functions in a model

CALLS = [
    ("max_pool1d", (3, 2, 1)),
    ("max_pool2d", ((3, 2), None, (1, 0), 2, True)),
    ("max_pool3d", (2,)),
    ("avg_pool1d", (3, 2, 1, True, False)),
    ("avg_pool2d", (2,)),
    ("avg_pool3d", ((2, 1, 2), 1, 0, False, True, 5)),
    ("lp_pool1d", (3, 2)),
    ("lp_pool2d", (2.0, (3, 2), 2, True)),
    ("lp_pool3d", (1, 2)),
    ("lp_pool2d", (float("inf"), 2)),
    ("adaptive_avg_pool1d", (3,)),
    ("adaptive_avg_pool2d", ((3, 2),)),
    ("adaptive_avg_pool3d", (2,)),
    ("adaptive_max_pool1d", (3,)),
    ("adaptive_max_pool2d", ((3, 2),)),
    ("adaptive_max_pool3d", (2,)),
]


def inputs(name):
    x = images(int(name[-2]), torch.float32) - 100
    return x.abs() if name.startswith("lp") else x, x


@ignore_torchs_own_cleanup
@pytest.mark.parametrize("name, attributes", CALLS)
def test_functions_are_exported_as_torchs(name, attributes):
    plain, x = inputs(name)  # fastpool's norms take absolute values
    expected = getattr(F, name)(plain, *attributes)

    def pool(x):
        return getattr(ft, name)(x, *attributes)

    same(torch.jit.trace(pool, x)(x), expected)
    model = torch.fx.symbolic_trace(pool)
    same(torch.jit.script(model)(x), expected)
    for strict in (False, True):
        program = torch.export.export(model, (x,), strict=strict)
        assert "fastpool" not in str(program.graph)
        same(program.module()(x), expected)


class ThereAndBack(nn.Module):
    """Pools and unpools by functions."""

    def __init__(self, rank, window, sized):
        super().__init__()
        self.pool, self.unpool = (getattr(ft, f"{n}{rank}d") for n in ("max_pool", "max_unpool"))
        self.window, self.sized = window, sized

    def forward(self, x):
        y, indices = self.pool(x, *self.window, return_indices=True)
        return y, indices, self.unpool(y, indices, *self.window, x.shape if self.sized else None)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_exported_indices_and_unpooling(rank):
    for window, sized in (((2, 2, 1), True), (((2,) * rank,), False)):
        x, model = images(rank, torch.float32), ThereAndBack(rank, window, sized)
        trace = torch.jit.trace(model, x)
        assert "fastpool::" not in str(trace.inlined_graph)
        larger = torch.cat([torch.cat([x, x]), torch.cat([x, x])], -1)  # a trace holds for it too
        for got, expected in (
            (trace(x), model(x)),
            (trace(larger), model(larger)),
            (torch.export.export(model, (x,)).module()(x), model(x)),
        ):
            for ours, theirs in zip(got, expected, strict=True):
                same(ours, theirs)


def unpool1d(y, indices, size: list[int]):
    return ft.max_unpool1d(y, indices, 2), ft.max_unpool1d(y, indices, 3, 2, 1, size)


def unpool2d(y, indices, size: list[int]):
    return ft.max_unpool2d(y, indices, (2, 2)), ft.max_unpool2d(y, indices, 2, output_size=size)


def unpool3d(y, indices, size: list[int]):
    return ft.max_unpool3d(y, indices, 2, 2), ft.max_unpool3d(y, indices, 3, 2, 1, size)


@pytest.mark.parametrize("unpool", [unpool1d, unpool2d, unpool3d])
def test_scripts_unpool(unpool):
    x = images(int(unpool.__name__[-2]), torch.float32)
    y, indices = getattr(ft, f"max_pool{x.dim() - 2}d")(x, 2, return_indices=True)
    expected = unpool(y, indices, x.shape)
    for got, right in zip(torch.jit.script(unpool)(y, indices, x.shape), expected, strict=True):
        same(got, right)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_extents_that_stay(kind, rank):
    adaptive = getattr(ft, f"adaptive_{kind}_pool{rank}d")
    x = images(rank, torch.float32)
    for size in (None, (None,) * rank, (*(None,) * (rank - 1), 2)):

        def pool(x, size=size):
            return adaptive(x, size)

        torch.testing.assert_close(torch.jit.trace(pool, x)(x), pool(x))


class Pool(nn.Module):
    def forward(self, x):
        return ft.max_pool2d(ft.avg_pool2d(x, 2, numerics="sequential"), 2, return_indices=True)


def test_a_script_calls_functions():
    x = images(2, torch.float32)
    y, indices = torch.jit.script(Pool())(x)
    expected = F.max_pool2d(F.avg_pool2d(x, 2), 2, return_indices=True)
    same(y, expected[0])
    same(indices, expected[1])


def test_shapes_of_exported_programs_may_be_symbolic():
    batch, height = torch.export.Dim("batch", min=1), torch.export.Dim("height", min=8)
    _, model = both(UNet)
    program = torch.export.export(model, (X,), dynamic_shapes=({0: batch, 2: 2 * height},))
    x = torch.rand(3, 3, 40, 32)
    same(program.module()(x), both(UNet)[0](x))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # attributes are checked
@pytest.mark.parametrize("dtype", [torch.uint16, torch.bool], ids=str)
def test_types_that_torch_does_not_pool_keep_fastpools_operators(dtype):
    x = (images(2) % 2).to(dtype)

    def pool(x):
        return ft.max_pool2d(ft.avg_pool2d(x, 1), 2)

    trace = torch.jit.trace(pool, x)
    assert str(trace.inlined_graph).count("fastpool::") == 2
    same(trace(x), pool(x))
    program = torch.export.export(torch.fx.symbolic_trace(pool), (x,))
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert targets == [OPS.avg_pool.default, OPS.max_pool.default]
    same(program.module()(x), pool(x))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8], ids=str)
def test_integers_that_torch_pools(dtype):
    x = images(2, torch.int64).to(dtype)
    trace = torch.jit.trace(lambda x: ft.max_pool2d(x, 2), x)
    assert "fastpool::" not in str(trace.inlined_graph)
    same(trace(x), ft.max_pool2d(x, 2))
    trace = torch.jit.trace(lambda x: ft.avg_pool2d(x, 2), x)
    assert ("fastpool::" in str(trace.inlined_graph)) == (dtype is torch.uint8)
    same(trace(x), ft.avg_pool2d(x, 2))


LOAD = """
import sys, torch
x = torch.load("x.pt")
for load in (torch.jit.load, lambda name: torch.export.load(name).module()):
    y = load("script.pt" if load is torch.jit.load else "program.pt2")(x)
    assert torch.equal(y, torch.load("y.pt"))
assert "fastpool" not in sys.modules
"""


def test_exported_models_run_without_fastpool(folder):
    theirs, ours = both(SegNet)
    torch.jit.save(torch.jit.trace(ours, X), "script.pt")
    torch.export.save(torch.export.export(ours, (X,)), "program.pt2")
    torch.save(X, "x.pt")
    torch.save(theirs(X).detach(), "y.pt")
    process = cases.run_python(LOAD)
    assert process.returncode == 0, process.stderr


# ------------------------------------------------------------------------------------ copies


@each_net
def test_copies_run_with_fastpool(make):
    """Their means are rounded once, so that they are compared with the model itself."""
    theirs, ours = both(make)
    expected = ours(X)
    # torch rounds each sum of a mean, and powers and roots of norms.
    torch.testing.assert_close(expected, theirs(X), rtol=1e-6, atol=1e-6)
    loaded = saved(torch.save, lambda file: torch.load(file, weights_only=False), ours)
    copies = copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), loaded
    for other in copies:
        assert list(map(type, other.modules())) == list(map(type, ours.modules()))
        assert repr(other) == repr(ours)
        same(other(X), expected)
    graph = torch.fx.symbolic_trace(ours)
    same(graph(X), expected)
    same(copy.deepcopy(graph)(X), expected)
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert "fastpool.torch" in [target.__module__ for target in targets]


@ignore_torchs_own_cleanup
@each_net
def test_compiled_models_have_fastpools_operators(make, compiled):
    _, model = both(make)
    targets = []

    def backend(graph, _):
        targets.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    same(torch.compile(model, fullgraph=True, backend=backend)(X), model(X))
    assert any(target.startswith("fastpool.") for target in targets)
    x, expected = (X.clone().requires_grad_() for _ in range(2))
    compiled(model)(x).sum().backward()
    model(expected).sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)


def test_training_flags_and_hooks_stay():
    theirs = ResNet()
    calls = []
    pool = theirs[3]
    pool.register_forward_hook(lambda module, args, y: calls.append("after") or y * 2)
    pool.register_forward_pre_hook(lambda module, args: calls.append("before") or args[0] + 1)
    pool.register_full_backward_hook(lambda *_: calls.append("backward"))
    theirs[3].eval()
    expected = theirs.eval()(X)
    theirs.train()
    theirs[3].eval()
    ft.replace_pooling(theirs, select="all")
    assert not theirs[3].training and theirs[4].skip[0].training
    assert not theirs.eval()[3].training and theirs.train()[3].training
    theirs.eval()
    for model in (theirs, copy.deepcopy(theirs)):
        calls.clear()
        torch.testing.assert_close(model(X), expected, rtol=1e-6, atol=1e-6)
        assert calls == ["before", "after"]
        model(X.clone().requires_grad_()).sum().backward()
        assert calls == ["before", "after"] * 2 + ["backward"]
    assert len(ft.restore_pooling(theirs).swapped) == 3
    calls.clear()
    same(theirs(X), expected)
    assert calls == ["before", "after"]


# ------------------------------------------------------------------------------------ turning back


@pytest.mark.parametrize("select", ["faster", "all"])
@each_net
def test_restored_models_are_the_models_that_they_were(make, select):
    net, _ = both(make)
    pool = next(module for module in net.modules() if isinstance(module, nn.MaxPool2d))
    pool.register_buffer("seen", torch.ones(2))
    theirs = nn.ModuleDict({"net": net, "again": pool})
    ours = copy.deepcopy(theirs)
    modules = list(ours.modules())
    replaced = ft.replace_pooling(ours, select=select)
    for module in ours.modules():
        if hasattr(module, "numerics"):
            module.numerics = "sequential"
    restored = ft.restore_pooling(ours)
    assert restored.swapped.keys() == replaced.swapped.keys() and not restored.left
    assert all(a is b for a, b in zip(ours.modules(), modules, strict=True))
    assert repr(ours) == repr(theirs)
    for a, b in zip(ours.modules(), theirs.modules(), strict=True):
        assert type(a) is type(b) and vars(a).keys() == vars(b).keys()
    state, expected = ours.state_dict(), theirs.state_dict()
    assert list(state) == list(expected)
    for name, value in expected.items():
        same(state[name], value)
    same(ours["net"](X), net(X))
    assert not ft.restore_pooling(ours).swapped


def test_what_is_not_restored():
    class Other(ft.MaxPool2d):
        pass

    model = nn.Sequential(Other(2), ft.AvgPool2d(2), ft.MaxPool2d(2), nn.MaxPool2d(2))
    model[2].forward = model[2].forward
    restored = ft.restore_pooling(model)
    assert list(restored.swapped) == ["1"] and type(model[1]) is nn.AvgPool2d
    assert list(restored.left) == ["0", "2"]
    assert "Other" in restored.left["0"] and restored.left["2"] == "has its own forward"
    assert str(restored).startswith("1 swapped, 2 left\n  1: AvgPool2d(kernel_size=2, ")
    alone = ft.MaxUnpool1d(2)
    assert "(model): MaxUnpool1d(" in str(ft.restore_pooling(alone))
    assert type(alone) is nn.MaxUnpool1d
    with pytest.raises(TypeError, match="^model: expected a torch.nn.Module, got function"):
        ft.restore_pooling(ft.max_pool2d)
