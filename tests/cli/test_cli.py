"""Each command of `fastpool` prints what it should, and a clear message if an argument is wrong."""

import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cases
import fastpool
import fastpool.files
import limits

click = pytest.importorskip("click")
pytest.importorskip("rich")

from fastpool import conventions  # noqa: E402  (they need click)
from fastpool._cli import check  # noqa: E402
from fastpool._cli.program import COMMANDS, program  # noqa: E402
from fastpool._running import builds as running  # noqa: E402

OPTIONS = ("--kernel", "3", "--strides", "2", "--layout", "NHWC")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(fastpool.__file__).parents[1])}
MAIN = "import sys; from fastpool._cli import main; sys.argv = ['fastpool', {}]; sys.exit(main())"


def main(*arguments):
    """Code that runs a command in an interpreter."""
    return MAIN.format(", ".join(map(repr, arguments)))


def all_commands(group=program):
    """Every command, with its words."""
    yield "", group
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, click.Group):
            for words, part in all_commands(command):
                yield f"{name} {words}".strip(), part
        else:
            yield name, command


COMMAND_OF = dict(all_commands())


# ------------------------------------------------------------------------------------ all of them


@pytest.mark.parametrize("words", COMMAND_OF)
def test_help_fits_a_terminal_and_has_examples(words):
    status, printed, said = cases.command(*words.split(), "--help")
    assert (status, said) == (0, "") and printed.startswith("Usage: fastpool")
    text, _, examples = printed.partition("\nExamples:\n")
    assert max(map(len, text.splitlines())) <= 80
    assert max(map(len, examples.splitlines())) <= 90
    assert examples.count(f"fastpool {words}") >= 1
    assert cases.command(*words.split(), "-h")[1] == printed


def test_examples_are_right(monkeypatch, folder):
    """Nothing runs, but for the parsing of options and arguments."""
    monkeypatch.setitem(sys.modules, "matplotlib", object())
    examples = []
    for command in COMMAND_OF.values():
        monkeypatch.setattr(command, "callback", lambda *_, **__: None)
        examples += command.examples
    seen = set()
    for example in examples:
        words = shlex.split(example.partition(" > ")[0], comments=True)
        if words[0] == "fastpool":
            assert cases.command(*words[1:])[0] == 0, example
            seen.add(words[1])
    assert seen == set(COMMANDS)


def test_wrong_usage_is_one_line():
    for arguments, message in [
        (["poool"], "No such command 'poool'."),
        (["pool", "x.npy"], "Missing argument 'OUT'. (fastpool pool --help)"),
        (["pool", "x.npy", "y.npy"], "Missing option '--kernel-shape'"),
        (["pool", "x.npy", "y.npy", "--kernl", "2"], "--kernl"),
    ]:
        status, printed, said = cases.command(*arguments)
        assert (status, printed, said.count("\n")) == (2, "", 1) and message in said
        assert said.startswith("fastpool: ")
    status, printed, said = cases.command()
    assert (status, printed) == (2, "") and said.startswith("Usage: fastpool")


def test_version():
    assert cases.command("--version") == (0, f"fastpool {fastpool.__version__}\n", "")


def test_module_and_script_are_the_same():
    command = [sys.executable, "-m", "fastpool", "--version"]
    process = subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, timeout=limits.HANG
    )
    assert process.stdout == f"fastpool {fastpool.__version__}\n", process.stderr
    scripts = importlib.metadata.entry_points(group="console_scripts", name="fastpool")
    assert {script.value for script in scripts} <= {"fastpool._cli:main"}


@pytest.mark.parametrize("package", ["click", "rich"])
def test_a_missing_package_is_named(package):
    process = cases.run_python(f"import sys; sys.modules[{package!r}] = None\n" + main("info"))
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr == (
        f'fastpool: the command line needs {package}: pip install "fastpool[cli]"\n'
    )


@pytest.mark.parametrize("command", [("-m", "fastpool"), ("-Xutf8", "-mfastpool"), "script"])
def test_an_unknown_build_is_one_line(command, tmp_path):
    """Python imports the package, which refuses, before any code of the command runs."""
    if command == "script":
        command = [str(tmp_path / "fastpool")]
        (tmp_path / "fastpool").write_text("from fastpool._cli import main\nmain()\n")
    environment = {**ENVIRONMENT, "FASTPOOL_ISA": "mmx"}
    process = subprocess.run(
        [sys.executable, *command, "info", "--json"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("fastpool: FASTPOOL_ISA='mmx': no such build runs here; ")
    assert process.stderr.count("\n") == 1 and "baseline" in process.stderr


def test_help_imports_little():
    code = main("--help").replace("sys.exit(main())", "\ntry: main()\nexcept SystemExit: pass\n")
    code += "print(*sorted(set(sys.modules) & {'rich.console', 'onnx', 'PIL', 'matplotlib'}))"
    process = cases.run_python(code)
    assert process.stdout.splitlines()[-1] == "", process.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize(
    "name, status, message", [("SIGINT", 130, "fastpool: interrupted"), ("SIGTERM", 143, "")]
)
def test_signals_leave_no_files(folder, name, status, message):
    interrupt = (
        "import os, signal, fastpool.files\n"
        # (a background job of a shell ignores it)
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def stop(done, every):\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "pool = fastpool.files.max_pool\n"
        "fastpool.files.max_pool = lambda *a, **k: pool(*a, **k | {'progress': stop})\n"
    )
    process = cases.run_python(interrupt + main("pool", "x.npy", "y.npy", *OPTIONS))
    assert (process.returncode, process.stdout) == (status, "")
    assert process.stderr.strip() == message
    assert cases.names(folder) == ["x.npy"]


def test_nobody_reads_the_output():
    """A pipe whose reader has gone: no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "fastpool", "info"]
    process = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, env=ENVIRONMENT, timeout=limits.HANG
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (1, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("patience", [0, 100])
def test_a_bar_on_a_terminal_for_long_work(folder, patience):
    """Standard error is a terminal here, standard output is not."""
    import pty

    master, terminal = pty.openpty()
    code = f"import fastpool._cli.screen as screen; screen.PATIENCE = {patience}\n"
    command = [sys.executable, "-c", code + main("pool", "x.npy", "y.npy", *OPTIONS)]
    environment = {**ENVIRONMENT, "TERM": "xterm"}
    process = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=terminal, timeout=limits.HANG, env=environment
    )
    os.write(terminal, b"end")
    os.close(terminal)
    said = os.read(master, 1 << 16).decode()
    os.close(master)
    assert (process.returncode, process.stdout) == (0, b"y.npy: uint8 2x14x19x3\n")
    if patience:
        assert said == "end"
    else:
        assert "100%" in said and "pooling" in said


# ---------------------------------------------------------------------------------- info and check


def test_info():
    status, printed, said = cases.command("info", "--json")
    assert (status, said) == (0, "")
    found = json.loads(printed)
    assert found["fastpool"] == fastpool.__version__ and found["numpy"] == np.__version__
    assert found["path"] == os.path.dirname(fastpool.__file__)
    assert found["builds"]["all"][found["builds"]["in_use"]] == "in use"
    assert set(found["builds"]["all"]) == set(running.BUILDS)
    folder = Path(found["path"])
    for name, (suffix, _) in running.BUILDS.items():
        is_installed = any(
            file.suffix in (".so", ".pyd") for file in folder.glob(f"_kernels{suffix}.*")
        )
        assert (found["builds"]["all"][name] != "not installed") == is_installed
    assert found["packages"]["click"] == importlib.metadata.version("click")
    assert found["gil"] == cases.GIL
    threads = found["threads"]
    assert all(threads["limits"][name] == threads["default"] for name in threads["because"])
    status, printed, _ = cases.command("info")
    assert status == 0 and f"{found['builds']['in_use']} (" in printed
    assert "\x1b" not in printed and not any(line.endswith(" ") for line in printed.splitlines())


def test_info_says_why():
    process = cases.run_python(
        main("info"), FASTPOOL_NUM_THREADS="1", FASTPOOL_ISA="baseline", OMP_NUM_THREADS="3"
    )
    lines = dict(line.split(maxsplit=1) for line in process.stdout.splitlines())
    assert lines["build"].startswith("baseline (FASTPOOL_ISA)")
    assert lines["threads"].startswith("1 by default (FASTPOOL_NUM_THREADS")  # affinity may be 1
    assert "OMP_NUM_THREADS: 3" in lines["limits"]
    process = cases.run_python(main("info"), FASTPOOL_NUM_THREADS="many")
    assert process.returncode == 2
    assert process.stderr == (
        "fastpool: FASTPOOL_NUM_THREADS must be a positive integer, got 'many'\n"
    )


def test_check(monkeypatch):
    monkeypatch.setattr(check, "DTYPES", ("float32", "bfloat16", "uint8", "int64", "bool"))
    status, printed, said = cases.command("check")
    assert (status, said) == (0, "") and printed.endswith(": all exact\n")
    rows = [line.split() for line in printed.splitlines()[1:-1]]
    assert ["float32", *["exact"] * len(running.builds())] in rows


def test_check_finds_a_difference(monkeypatch):
    pool = fastpool.max_pool
    monkeypatch.setattr(check, "DTYPES", ("uint8",))

    def wrong(x, **attributes):
        results = pool(x, **attributes)
        if attributes["kernel_shape"] == 7 and not attributes.get("return_indices"):
            results[0, 0] ^= 1
        return results

    monkeypatch.setattr(fastpool, "max_pool", wrong)
    status, printed, _ = cases.command("check")
    assert status == 1 and "uint8 1 differ" in " ".join(printed.split())
    assert "one axis, threads: 1: result: 1 of " in printed


def test_check_finds_a_wrong_mean(monkeypatch):
    mean = fastpool.avg_pool
    monkeypatch.setattr(check, "DTYPES", ("float64",))

    def wrong(x, kernel_shape, **attributes):
        y = mean(x, kernel_shape, **attributes)
        return np.nextafter(y, np.inf) if kernel_shape == 7 else y

    monkeypatch.setattr(fastpool, "avg_pool", wrong)
    status, printed, _ = cases.command("check")
    assert status == 1 and "one axis, threads: 1, averaged, pairwise: result: " in printed


# ----------------------------------------------------------------------------------------- explain


def test_explain():
    shape = (1, 3, 224, 224)
    attributes = {"kernel_shape": 3, "strides": 2, "auto_pad": "SAME_UPPER"}
    options = ("--kernel", "3", "--strides", "2", "--auto-pad", "SAME_UPPER")
    plan = fastpool.plan_max_pool(shape, "uint8", **attributes, return_indices=True)
    assert cases.command(
        *("explain", "--shape", "1,3,224,224", *options, "--dtype", "uint8", "--return-indices")
    ) == (0, plan.explain() + "\n", "")
    compared = conventions.compare((224, 224), **attributes)
    assert cases.command("explain", "--shape", "1,3,224,224", *options, "--conventions") == (
        *(0, f"{compared}\n", ""),
    )
    compared = conventions.compare((224, 224), **attributes, op="average", count_include_pad=True)
    options += ("--op", "avg", "--count-include-pad", "--conventions")
    assert cases.command("explain", "--shape", "1,3,224,224", *options) == (
        *(0, f"{compared}\n", ""),
    )


@pytest.mark.parametrize(
    ("op", "options", "plan"),
    [
        (
            "avg",
            ("--kernel", "3", "--divisor", "9", "--result-dtype", "float64"),
            lambda: fastpool.plan_avg_pool(
                (1, 3, 9, 9), "float32", 3, divisor=9, result_dtype="float64"
            ),
        ),
        ("global-max", (), lambda: fastpool.plan_global_max_pool((1, 3, 9, 9), "float32")),
        (
            "adaptive-avg",
            ("--output-size", "3"),
            lambda: fastpool.plan_adaptive_avg_pool((1, 3, 9, 9), "float32", 3),
        ),
    ],
)
def test_explain_ops(op, options, plan):
    arguments = "explain", "--op", op, "--shape", "1,3,9,9", *options
    assert cases.command(*arguments) == (0, plan().explain() + "\n", "")


def test_explain_says_why_not_only_if_asked():
    arguments = "explain", "--shape", "1,64,56,56", "--kernel", "3"
    said = [cases.command(*arguments, *more)[1] for more in ([], ["--verbose"])]
    assert ["\nnot by " in text for text in said] == [False, True]


def test_explain_as_json():
    arguments = "explain", "--shape", "6,9", "--layout", "HW", "--json"
    windows = "--kernel 3", "--kernel 3 --op lp --p inf", "--output-size 4 --op adaptive-avg"
    for options in windows:
        status, printed, said = cases.command(*arguments, *options.split())
        assert (status, said) == (0, "") and "Infinity," not in printed
        found = json.loads(printed)
        assert found["input_shape"] == [6, 9] and found["axes"][1]["size"] == 9
        assert {"window", "values", "kernel", "threads"} <= found["explained"].keys()
    status, printed, said = cases.command(*arguments, "--kernel", "3", "--conventions")
    answers = json.loads(printed)["answers"]
    assert (status, said, len(answers)) == (0, "", 5) and answers[0]["output_shape"] == [4, 7]


@pytest.mark.parametrize("more", [("--axes", "W"), ("--conventions",)])
def test_explain_draws(folder, more):
    pytest.importorskip("matplotlib")
    arguments = "explain", "--shape", "5,6", "--layout", "HW", "--kernel", "2", "--ceil-mode"
    status, printed, said = cases.command(*arguments, *more, "--svg", "w.svg", "--png", "w.png")
    assert (status, said) == (0, "") and printed
    assert Path("w.svg").read_text().startswith("<?xml")
    assert Path("w.png").read_bytes().startswith(b"\x89PNG")
    assert cases.names(folder) == ["w.png", "w.svg", "x.npy"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--shape 6 --kernel 3", '--layout: "NCHW" needs batch'),
        ("--shape 6 --layout W --kernel 9", "--kernel-shape[0]: window (9"),
        ("--shape 6 --layout W --kernel 3 --dtype complex64", "--dtype: expected one of"),
        ("--shape 6 --layout W --op avg --kernel 3 --result-dtype f2", "--result-dtype: expected"),
        ("--shape 6 --layout W --kernel 3 --conventions --nan ignore", "--nan: has no meaning"),
        ("--shape 6 --layout W --kernel 3 --conventions --axes W", "--axes: has no meaning"),
        ("--shape 6 --layout W --op avg", "Missing option '--kernel-shape'"),
        ("--shape 6 --layout W --op adaptive-avg --kernel 3", "--kernel-shape: has no meaning"),
        ("--shape 6 --layout W --kernel 3 --rounding trunc", "--rounding: has no meaning"),
        ("--shape 6 --layout W --op global-max --conventions", "--op: has no meaning"),
        ("--shape 6 --layout W --kernel 3 --svg w.png", "'--svg': expected a name that ends in"),
    ],
)
def test_what_cannot_be_explained_is_one_line(arguments, message):
    status, printed, said = cases.command("explain", *arguments.split())
    assert (status, printed) == (2, "") and message in said and said.count("\n") == 1


def test_a_drawing_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = "explain", "--shape", "6", "--layout", "W", "--kernel", "3", "--svg", "w.svg"
    said = 'fastpool: a picture needs matplotlib: pip install "fastpool[plot]"\n'
    assert cases.command(*arguments) == (2, "", said)


# --------------------------------------------------------------------------------------------- run


@pytest.fixture
def models(folder):
    """Models and inputs in files."""
    pytest.importorskip("onnx")
    import onnx.parser

    pool = "y = MaxPool <kernel_shape = [2], strides = [2]> (x)"
    for name, nodes in {"pool": pool, "neg": f"z = Neg (x) {pool.replace('(x)', '(z)')}"}.items():
        text = f"""<ir_version: 8, opset_import: ["": 13]>
            example (float[1, 1, 4] x) => (float[1, 1, 2] y) {{ {nodes} }}"""
        onnx.save(onnx.parser.parse_model(text), f"{name}.onnx")
    np.savez("in.npz", x=np.array([[[1, 3, 2, 4]]], np.float32))
    np.savez("unnamed.npz", np.array([[[1, 3, 2, 4]]], np.float32))
    np.savez("double.npz", x=np.array([[[1.0, 3, 2, 4]]]))
    return folder


def test_run(models):
    assert cases.command("run", "pool.onnx", "in.npz", "out.npz") == (
        *(0, "out.npz: y float32 1x1x2\n", ""),
    )
    with np.load("out.npz") as out:
        assert out.files == ["y"]
        cases.assert_same(out["y"], np.array([[[3, 4]]], np.float32))


def test_run_with_onnxruntime(models):
    pytest.importorskip("onnxruntime")
    assert cases.command("run", "neg.onnx", "in.npz", "out.npz", "--session")[0] == 0
    with np.load("out.npz") as out:
        cases.assert_same(out["y"], np.array([[[-1, -2]]], np.float32))
    status, _, said = cases.command("run", "neg.onnx", "double.npz", "out.npz", "--session")
    assert status == 2 and "expected float32, got float64" in said


def test_explain_a_model_as_json(models):
    pytest.importorskip("onnxruntime")
    status, printed, said = cases.command("explain", "pool.onnx", "--json")
    found = json.loads(printed)
    assert (status, said) == (0, "") and found["summary"] == "1 of 1 pooling nodes with fastpool"
    assert found["nodes"] == ["node (MaxPool) of the output 'y': fastpool"]


def test_run_fills_in_default_values(models):
    import onnx.parser

    text = """<ir_version: 8, opset_import: ["": 13]>
        example (float[1, 1, 2] x, int64[1, 1, 2] where = {3, 0}, int64[3] size = {1, 1, 4})
            => (float[1, 1, 4] y) {
                y = MaxUnpool <kernel_shape = [2], strides = [2]> (x, where, size) }"""
    onnx.save(onnx.parser.parse_model(text), "unpool.onnx")
    np.savez("in.npz", x=np.float32([[[5, 6]]]), where=np.array([[[1, 2]]]))
    status, _, said = cases.command("run", "unpool.onnx", "in.npz", "out.npz")
    assert (status, said) == (0, "")
    with np.load("out.npz") as out:
        cases.assert_same(out["y"], np.float32([[[0, 5, 6, 0]]]))


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        ("neg.onnx in.npz o.npz", 2, "MODEL.onnx: unsupported operators"),
        ("neg.onnx in.npz o.npz", 2, "Neg (1); --session runs them with onnxruntime"),
        ("pool.onnx unnamed.npz o.npz", 2, "INPUTS.npz: expected the arrays x tensor(float)"),
        ("pool.onnx double.npz o.npz", 2, "input 'x': expected float32, got float64"),
        ("pool.onnx pool.onnx o.npz", 2, "'pool.onnx' is no .npz file"),
        ("in.npz in.npz o.npz", 2, "MODEL.onnx: "),
        ("nothing.onnx in.npz o.npz", 1, "nothing.onnx: No such file or directory"),
        ("pool.onnx in.npz no/o.npz", 1, "o.npz: No such file or directory"),
        ("pool.onnx in.npz o.npz --nan maybe", 2, "nan: expected one of"),
    ],
)
def test_what_goes_wrong_in_a_run_is_one_line(models, arguments, status, message):
    before = cases.names(models)
    got, printed, said = cases.command("run", *arguments.split())
    assert (got, printed) == (status, "") and message in said and said.count("\n") == 1
    assert cases.names(models) == before


def test_run_without_onnx(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    status, _, said = cases.command("run", "pool.onnx", "in.npz", "o.npz")
    assert status == 2 and said.endswith('needs onnx: pip install "fastpool[onnx]"\n')


# ------------------------------------------------------------------------------- demo and mosaic


def test_the_page_of_the_demo(folder):
    for name in ("PIL", "scipy", "skimage"):
        pytest.importorskip(name)
    from fastpool._cli import science

    lines, problems = science.run(folder)
    assert not problems and len(lines) == 9
    page = (folder / "science.html").read_text()
    for name in ("labels", "raster", "photograph"):
        assert f'src="{name}.png"' in page and (folder / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize("words", [["demo"], ["mosaic", "m.npy"]])
def test_missing_packages_of_the_demo(folder, monkeypatch, words):
    for name in ("mosaic_file", "photographs"):
        monkeypatch.delitem(sys.modules, f"fastpool._cli.{name}", raising=False)
        monkeypatch.delattr(fastpool._cli, name, raising=False)
    monkeypatch.setitem(sys.modules, "skimage", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    status, printed, said = cases.command(*words)
    assert (status, printed) == (2, "") and said.endswith('pip install "fastpool[demo]"\n')


def test_mosaic(folder):
    pytest.importorskip("skimage")
    pytest.importorskip("PIL")
    arguments = "mosaic", "m.npy", "--size"
    assert cases.command(*arguments, "350") == (0, "m.npy: uint8 350x350x3\n", "")
    mosaic = np.load("m.npy")
    assert mosaic.shape == (350, 350, 3) and mosaic.dtype == np.uint8
    cells = mosaic[:300, :300].reshape(3, 100, 3, 100, 3)
    assert cells.std(axis=(1, 3)).min() > 5  # each a picture
    assert len(np.unique(cells.mean(axis=(1, 3)).round().reshape(9, 3), axis=0)) == 9
    status, _, said = cases.command(*arguments, "0")
    assert status == 2 and "'--size': 0 is not in the range x>=1" in said
