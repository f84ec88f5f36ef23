"""Measure what calls cost through torch, ONNX, OpenVINO, xarray, dask and files; write routes.json.

    python -P docs/routes.py             # all tables: two minutes
    python -P docs/routes.py torch onnx  # these tables, in place of those that are there

The texts of a row are the code that is timed, in turns, on one thread. Each table is measured in a
process of its own, by its processor time. `ci/check_figures.py --write` puts the tables into the
pages.
"""

import json
import os
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

from fastpool.bench import measure, report

SECONDS = 1.5  # for one row

# Block and page: the packages; names, which the code of the rows uses; titles; and the rows.
TABLES = {
    "torch": (
        ("torch",),
        """
import copy, fastpool.torch, torch, torch.nn.functional as F

x = torch.rand(1, 1, 8, 8)
half, g = x.bfloat16(), torch.rand(1, 1, 8, 8, requires_grad=True)
layer, fast_layer = torch.nn.MaxPool2d(2), fastpool.torch.MaxPool2d(2)
compiled, fast_compiled = (
    torch.compile(of, backend="aot_eager") for of in (layer, copy.deepcopy(fast_layer))
)
y, i = F.max_pool2d(x, 2, return_indices=True)
""",
        ("torch", "fastpool"),
        (
            ("F.max_pool2d(x, 2)", "fastpool.torch.max_pool2d(x, 2)"),
            (
                "F.max_pool2d(x, 2, return_indices=True)",
                "fastpool.torch.max_pool2d(x, 2, return_indices=True)",
            ),
            ("F.max_pool2d(half, 2)", "fastpool.torch.max_pool2d(half, 2)"),
            ("layer(x)", "fast_layer(x)"),
            ("compiled(x)", "fast_compiled(x)"),
            ("F.avg_pool2d(x, 2)", "fastpool.torch.avg_pool2d(x, 2)"),
            ("F.adaptive_avg_pool2d(x, 3)", "fastpool.torch.adaptive_avg_pool2d(x, 3)"),
            ("F.max_unpool2d(y, i, 2)", "fastpool.torch.max_unpool2d(y, i, 2)"),
            ("F.max_pool2d(g, 2)", "fastpool.torch.max_pool2d(g, 2)"),
            (
                "F.max_pool2d(g, 2).sum().backward()",
                "fastpool.torch.max_pool2d(g, 2).sum().backward()",
            ),
        ),
    ),
    "networks": (
        ("torch",),
        """
import copy, fastpool.torch, torch
from torch.nn import Conv2d, MaxPool2d, ReLU, Sequential

torch.inference_mode().__enter__()
image, maps = torch.rand(1, 3, 224, 224), torch.rand(1, 256, 20, 20)
image_last, maps_last = (t.to(memory_format=torch.channels_last) for t in (image, maps))
stem = Sequential(Conv2d(3, 64, 7, 2, 3), ReLU(), MaxPool2d(3, 2, 1), Conv2d(64, 64, 3, 1, 1))
spp = Sequential(Conv2d(256, 128, 1), MaxPool2d(13, 1, 6), Conv2d(128, 256, 1))
fast_stem, fast_spp = copy.deepcopy(stem), copy.deepcopy(spp)
for of in (fast_stem, fast_spp):
    fastpool.torch.replace_pooling(of)
""",
        ("torch", "fastpool"),
        (
            ("stem(image)", "fast_stem(image)"),
            ("stem(image_last)", "fast_stem(image_last)"),
            ("spp(maps)", "fast_spp(maps)"),
            ("spp(maps_last)", "fast_spp(maps_last)"),
        ),
    ),
    "onnx": (
        ("onnx", "onnxruntime"),
        """
import fastpool.onnx, numpy as np, onnx.parser, onnxruntime
from onnx.reference import ReferenceEvaluator

x = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 13]>
    example (float[1, 1, 8, 8] x) => (float[1, 1, 4, 4] y) {
        y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
    }''')
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
data, inputs = model.SerializeToString(), {"x": x}
plain = onnxruntime.InferenceSession(data, options)
inside = fastpool.onnx.InferenceSession(data, options)
backend = fastpool.onnx.Backend.prepare(model)
reference = ReferenceEvaluator(model)
with_ops = ReferenceEvaluator(model, new_ops=fastpool.onnx.ops)
""",
        ("",),
        (
            ("fastpool.onnx.max_pool(x, kernel_shape=[2, 2], strides=[2, 2])",),
            ("backend.run([x])",),
            ("plain.run(None, inputs)",),
            ("inside.run(None, inputs)",),
            ("with_ops.run(None, inputs)",),
            ("reference.run(None, inputs)",),
        ),
    ),
    "openvino": (
        ("openvino",),
        """
import functools, fastpool.openvino, numpy as np, openvino, openvino.opset14 as ops

@functools.cache
def request(inside, shape, dtype, kernel, stride, result):
    x = ops.parameter(shape, dtype)
    window = [stride] * 2, [1, 1], [0, 0], [0, 0], [kernel] * 2
    node = ops.max_pool(x, *window, index_element_type="i64").output(result)
    model = openvino.Model([ops.result(node)], [x], "one")
    if inside:
        fastpool.openvino.replace_pooling(model, select="all")
    how = {"INFERENCE_NUM_THREADS": "1", "INFERENCE_PRECISION_HINT": "f32"}
    return openvino.Core().compile_model(model, "CPU", how).create_infer_request()

def run(inside, x, kernel, stride, result=0):
    made = request(inside, x.shape, x.dtype.type, kernel, stride, result)
    return next(iter(made.infer([x], share_inputs=True, share_outputs=True).values()))

own, fast = functools.partial(run, False), functools.partial(run, True)
rng = np.random.default_rng(0)
small, x = (rng.random(shape, np.float32) for shape in ((1, 1, 8, 8), (1, 32, 256, 256)))
u8 = rng.integers(0, 256, (1, 32, 512, 512), np.uint8)
""",
        ("OpenVINO", "fastpool inside"),
        (
            ("own(small, 2, 2)", "fast(small, 2, 2)"),
            ("own(x, 2, 2)", "fast(x, 2, 2)"),
            ("own(x, 2, 2, result=1)", "fast(x, 2, 2, result=1)"),
            ("own(x, 9, 1)", "fast(x, 9, 1)"),
            ("own(u8, 3, 2)", "fast(u8, 3, 2)"),
        ),
    ),
    "xarray": (
        ("xarray", "bottleneck"),
        """
import fastpool.xarray, numpy as np, xarray

rng = np.random.default_rng(0)
image = xarray.DataArray(rng.random((1024, 1024), np.float32), dims=("lat", "lon"))
long = xarray.DataArray(rng.random(1 << 22, np.float32), dims=("time",))
gaps = long.where(rng.random(1 << 22) > 0.05)
""",
        ("xarray", "fastpool"),
        (
            (
                "image.rolling(lat=5, lon=5).mean()",
                "fastpool.xarray.rolling(image, lat=5, lon=5).mean()",
            ),
            ("long.rolling(time=7).max()", "fastpool.xarray.rolling(long, time=7).max()"),
            (
                "gaps.rolling(time=7, min_periods=3).max()",
                "fastpool.xarray.rolling(gaps, time=7, min_periods=3).max()",
            ),
            ("long.rolling(time=31).mean()", "fastpool.xarray.rolling(long, time=31).mean()"),
        ),
    ),
    "dask": (
        ("dask",),
        """
import dask.array, fastpool, fastpool.dask, numpy as np

tile = np.random.default_rng(0).random((4096, 4096), np.float32)
chunks = dask.array.from_array(np.concatenate([tile] * 4), (4096, 4096), name=False)
pooled = fastpool.max_pool(chunks, 2, strides=2, layout="HW")

def plain():
    return np.concatenate([fastpool.max_pool(tile, 2, strides=2, layout="HW") for _ in range(4)])

def blocks():
    return pooled.compute(scheduler="synchronous")
""",
        ("plain calls", "blocks"),
        (("plain()", "blocks()"),),
    ),
    "files": (
        ("numpy",),
        """
import fastpool.files, numpy as np, os, tempfile

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
np.save("x.npy", np.random.default_rng(0).integers(0, 256, (8000, 8000, 3), np.uint8))
window = {"strides": 4, "layout": "HWC"}

def in_memory():
    np.save("y.npy", fastpool.max_pool(np.load("x.npy"), 4, **window))

def in_files(max_bytes):
    fastpool.files.max_pool("x.npy", "y.npy", 4, **window, max_bytes=max_bytes)
""",
        ("NumPy", "files"),
        (("in_memory()", "in_files(64 << 20)"), ("in_memory()", "in_files(16 << 20)")),
    ),
    "digits": (
        ("numpy",),
        """
import fastpool, numpy as np

rng = np.random.default_rng(0)
x = rng.standard_normal((1, 64, 56, 56), np.float32)
wide = x * np.exp2(rng.integers(-120, 120, x.shape)).astype("f4")
gaps = np.where(rng.random(x.shape) < 0.01, np.float32("nan"), x)
x64, wide64 = rng.standard_normal(x.shape), wide.astype("f8") * 1.1
""",
        ("in pairs", "exact"),
        tuple(
            (f"fastpool.avg_pool({name}, {k})", f'fastpool.avg_pool({name}, {k}, numerics="exact")')
            for name, k in (
                *(("x", 3), ("wide", 3), ("wide", 15), ("gaps", 3)),
                *(("x64", 3), ("wide64", 3), ("wide64", 15)),
            )
        ),
    ),
    "norms": (
        ("numpy",),
        """
import fastpool, numpy as np

x = np.random.default_rng(0).random((1, 64, 56, 56), np.float32)
x64 = x.astype("f8")
""",
        ("",),
        tuple(
            (f"fastpool.{call}",)
            for call in (
                *("avg_pool(x, 3)", "lp_pool(x, 3, 1)", "lp_pool(x, 3, 2)", "lp_pool(x, 3, 3)"),
                *("lp_pool(x64, 3, 2)", "lp_pool(x64, 3, 3)", "lp_pool(x64, 3, 2.5)"),
            )
        ),
    ),
}


def time_row(codes, names):
    """Return the least microseconds of each code, in turns."""
    calls = [eval(f"lambda: {code}", names) for code in codes]
    for call in calls:
        call()
    least, count, end = [float("inf")] * len(calls), 1, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for which, call in enumerate(calls):
            start = time.process_time()
            for _ in range(count):
                call()
            least[which] = min(least[which], (time.process_time() - start) / count)
        count = min(1000, max(1, int(0.001 / min(least))))  # a millisecond, as clocks are coarse
        time.sleep(measure.PAUSE)  # other libraries' idle threads spin for a while
    return [float(f"{seconds * 1e6:.3g}") for seconds in least]


def time_table(name):
    _, setup, _, rows = TABLES[name]
    names = {}
    exec(setup, names)
    return [time_row(codes, names) for codes in rows]


def main(names):
    path = Path(__file__).with_suffix(".json")
    found = json.loads(path.read_text()) if path.is_file() else {}
    environment = os.environ | dict.fromkeys(measure.THREAD_VARIABLES, "1")
    for name in names or TABLES:
        command = [sys.executable, "-P", __file__, "--table", name]
        packages, _, titles, rows = TABLES[name]
        times = json.loads(subprocess.check_output(command, env=environment, text=True))
        versions = {package: metadata.version(package) for package in packages}
        found[name] = {"machine": report.machine(), "versions": versions, "titles": titles}
        found[name]["rows"] = list(zip(rows, times, strict=True))
        print(name, flush=True)
    tables = (f" {json.dumps(name)}: {json.dumps(found[name])}" for name in TABLES)
    path.write_text("{\n" + ",\n".join(tables) + "\n}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"]:
        print(json.dumps(time_table(sys.argv[2])))
    else:
        main(sys.argv[1:])
