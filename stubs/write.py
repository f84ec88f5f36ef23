"""Write fastpool's stubs (.pyi) from the stubs of this folder and the signatures of the modules.

    python stubs/write.py

setup.py runs it, and so every build does. Modules are read, not imported: it needs no kernels.

A stub of this folder is a normal stub, except for what is filled in:

- `__all__`, if the module has it.
- The parameters of a function. A function lists only those that differ from the tables below. All
  others come in the order and with the defaults of the module, annotated by the first table that
  names them: BY_INPUT, by the annotation of the first parameter; BY_PACKAGE; EVERY. ABSENT is a
  parameter that the function does not take from such an input.
- The fields of a dataclass or named tuple. A class lists only those whose annotation differs from
  that of the module, in which `tuple` stands for integers.
- A name with Nd, which stands for 1d, 2d and 3d, or with mxx or Mxx, for max and min.
- The functions of minima, which are those of maxima in other stubs, renamed.
"""

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent

# What is written in place of marks, once for each item.
DIMENSIONS = [{"Nd": "1d"}, {"Nd": "2d"}, {"Nd": "3d"}]
EXTREMA = [{"mxx": "max", "Mxx": "Max"}, {"mxx": "min", "Mxx": "Min"}]
ABSENT = None

EVERY = {
    "activation": "t.Activation",
    "activation_params": "Sequence[float] | None",
    "auto_pad": "t.AutoPad",
    "beyond": "t.Beyond",
    "block_size": "t.Ints",
    "border": "t.Border",
    "border_value": "float | None",
    "ceil_mode": "t.CeilMode",
    "ceil_rule": "t.CeilRule",
    "count_include_pad": "t.CountIncludePad",
    "ddof": "SupportsIndex",
    "dilations": "t.Ints | None",
    "divisor": "SupportsIndex | None",
    "dtype": "DTypeLike | None",
    "edge": "t.Edge",
    "factor": "t.Ints",
    "func": "t.BlockFunction",
    "index_axis": "SupportsIndex | None",
    "index_dtype": "DTypeLike | None",
    "index_layout": "t.IndexLayout",
    "index_space": "t.IndexSpace",
    "indices": "t.Array",
    "keepdims": "t.KeepDims",
    "kernel_shape": "t.Ints",
    "layout": "t.Layout",
    "levels": "SupportsIndex",
    "min_count": "SupportsIndex | None",
    "nan": "t.Nan",
    "nodata": "float | None",
    "num_threads": "SupportsIndex | None",
    "numerics": "t.Numerics",
    "output_shape": "t.Counts | None",
    "output_size": "t.OutputSize",
    "p": "float | None",
    "pads": "t.Ints | None",
    "partial": "t.Partial",
    "result_dtype": "DTypeLike | None",
    "rounding": "t.Rounding",
    "storage_order": "t.StorageOrder",
    "strides": "t.Strides | None",
    "where": "t.Array | None",
}

# Arguments of a DataArray, by the name of a dimension.
BY_DIMENSION = {
    "dilations": "t.ByDimension | None",
    "kernel_shape": "Mapping[Any, SupportsIndex]",
    "output_size": "Mapping[Any, SupportsIndex | None]",
    "pads": "t.PadsByDimension | None",
    "strides": "t.StridesByDimension | None",
}

BY_PACKAGE = {
    "dask": {
        "indices": "da.Array | t.Array",
        "where": "NDArray[np.bool_] | da.Array | None",
        "x": "da.Array",
    },
    "files": {
        "axes": "str | None",
        "chunks": "t.Ints | None",
        "indices": "_Path | None",
        "max_bytes": "SupportsIndex",
        "progress": "Callable[[int, int], object] | None",
        "scale": "Sequence[float] | None",
        "unit": "str | None",
        "ome_version": 'Literal["0.5", "0.4"]',
        **dict.fromkeys(["source", "target"], "_Path"),
    },
    "ndimage": {
        "axes": "t.Ints | None",
        "axis": "SupportsIndex",
        "cval": "float",
        **dict.fromkeys(["footprint", "structure"], "ArrayLike | None"),
        "input": "t.Array",
        "mode": "str | Sequence[str]",
        "origin": "t.Ints",
        "output": "_Output",
        "size": "t.Ints | None",
    },
    "onnx": {
        "activation": "t.Activation | bytes",
        "auto_pad": "t.AutoPad | bytes",
        "channels_last": "_ChannelsLast",
        "dilations": "t.Counts | None",
        "kernel_shape": "t.Counts",
        "layout": "t.BatchLayout",
        "pads": "t.Counts | None",
        "pads_with_auto_pad": "_OnPads",
        "strides": "t.Counts | None",
        "x_scale": "_Scale",
        "x_zero_point": "_ZeroPoint",
        "y_scale": "_Scale",
        "y_zero_point": "_ZeroPoint",
    },
    "openvino": {
        "auto_pad": "_AutoPad",
        "axis": "SupportsIndex | None",
        "dilations": "t.Counts | None",
        "exclude_pad": "_ExcludePad",
        "index_element_type": "_IndexElementType",
        "kernel": "t.Counts",
        "layout": "t.BatchLayout",
        "pads_begin": "t.Counts | None",
        "pads_end": "t.Counts | None",
        "rounding_type": "_RoundingType",
        "strides": "t.Counts",
        "version": "SupportsIndex",
    },
    "torch": {
        "ceil_mode": "bool",
        "count_include_pad": "bool",
        "dilation": "_Ints",
        "divisor_override": "int | None",
        "indices": "Tensor",
        "input": "Tensor",
        "kernel_size": "_Ints",
        "norm_type": "float",
        "numerics": "_Numerics",
        "output_size": "_Sizes",
        "padding": "_Ints",
        "stride": "_Ints | None",
    },
    "xarray": {
        **BY_DIMENSION,
        "dims": "Hashable | Iterable[Hashable]",
        "indices": "DataArray",
        "x": "DataArray",
    },
}

# What only arrays have that are neither a DataArray nor dask's, then what a DataArray lacks.
OUTPUTS = ["out", "out_indices"]
OF_LAYOUTS = ["activation", "activation_params", "index_axis", "index_layout", "index_space"]
OF_LAYOUTS += ["layout", "output_shape", "storage_order"]

BY_INPUT = {
    "NDArray[_T]": {"dtype": "None", "out": "NDArray[_T] | None"},
    "NDArray[_Byte]": {"out": "NDArray[_Byte] | None"},
    "t.Array": {"out": "NDArray[Any] | None", "out_indices": "NDArray[Any] | None"},
    "t.Counts": {"dtype": "DTypeLike"},
    "_DaskArray": {
        "indices": "t.DaskArray | t.Array",
        **dict.fromkeys([*OUTPUTS, "border", "border_value"], ABSENT),
    },
    "_DataArray": {
        **BY_DIMENSION,
        "indices": "t.DataArray",
        **dict.fromkeys([*OUTPUTS, *OF_LAYOUTS], ABSENT),
    },
}


class Module:
    """The functions and `__all__` of a module, its imports from near it followed."""

    def __init__(self, path):
        self.path = path
        self.body = ast.parse(path.read_text(encoding="utf-8")).body

    def exported(self):
        """Return the list `__all__`, or None."""
        for node in self.body:
            if isinstance(node, ast.Assign) and written(node.targets[0]) == "__all__":
                return ast.literal_eval(node.value)
        return None

    def defined(self, name, kind=ast.FunctionDef):
        """Return the definition of a function, or None if the module gets it another way.

        `kind` may be ast.ClassDef, for a class.
        """
        for node in self.body:
            if isinstance(node, kind) and node.name == name:
                return node
            # (A front end exports functions of other packages with other parameters.)
            near = isinstance(node, ast.ImportFrom) and 1 <= node.level <= 1 + (
                kind is ast.ClassDef
            )
            if near and any(alias.name == name for alias in node.names):
                path = self.path.parents[node.level - 1] / (node.module.replace(".", "/") + ".py")
                return Module(path).defined(name, kind)
        return None

    def fields(self, name):
        """Return the fields of a class, or else of the first base that has some, by name."""
        found = self.defined(name, ast.ClassDef)
        if found is None:
            return {}
        bases = (self.fields(written(base)) for base in found.bases)
        return fields_in(found) or next(filter(None, bases), {})


def parameters(function):
    """Yield each parameter, its default or None, and whether it is given by name only."""
    given = function.args
    assert not given.posonlyargs, function.name
    first = len(given.args) - len(given.defaults)
    for at, argument in enumerate(given.args):
        yield argument, given.defaults[at - first] if at >= first else None, False
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield argument, default, True


def written(node):
    """Return the source of an expression, with the quotes of all other sources."""
    return ast.unparse(node).replace("'", '"')


def default_shown(node):
    """Return a default of a module as a stub shows it: constants, else an ellipsis."""
    try:
        ast.literal_eval(node)
    except ValueError:
        return "..."
    return written(node)


def filled(stub, function, package):
    """Return the parameters of a function, each as text: those of the stub, then the tables'."""
    given = {argument.arg: (argument, *rest) for argument, *rest in parameters(stub)}
    first = written(next(iter(given.values()))[0].annotation) if given else ""
    tables = [BY_INPUT.get(first, {}), BY_PACKAGE.get(package, {}), EVERY]
    texts, keywords_only = [], False
    for argument, default, keyword in parameters(function):
        name = argument.arg
        if name in given:
            argument, default, keyword_here = given.pop(name)
            annotation = written(argument.annotation)
            shown = default and written(default)
            keyword = keyword or keyword_here
        else:
            table = next((table for table in tables if name in table), None)
            if table is None:
                raise LookupError(f"no annotation for {name} of {package}.{stub.name}")
            annotation = table[name]
            if annotation is ABSENT:
                continue
            shown = default and default_shown(default)
        if keyword and not keywords_only:
            texts.append("*")
            keywords_only = True
        texts.append(f"{name}: {annotation}" + (f" = {shown}" if shown else ""))
    if given and not function.args.kwarg:
        raise LookupError(f"{package}.{stub.name} has no parameter {', '.join(given)}")
    for name, (argument, default, _) in given.items():  # one of those that ** stands for
        texts.append(f"{name}: {written(argument.annotation)}")
        texts[-1] += f" = {written(default)}" if default else ""
    if stub.args.kwarg:
        texts.append(f"**{stub.args.kwarg.arg}: {written(stub.args.kwarg.annotation)}")
    return texts


def definition(stub, function, package):
    """Return a function of a stub as text, its parameters filled in."""
    texts = filled(stub, function, package)
    lines = [f"@{written(decorator)}" for decorator in stub.decorator_list]
    returns = f") -> {written(stub.returns)}: ..."
    line = f"def {stub.name}({', '.join(texts)}{returns}"
    if len(line) > 100:
        line = f"def {stub.name}(\n" + "".join(f"    {text},\n" for text in texts) + returns
    return "\n".join([*lines, line])


def fields_in(node):
    """Return the annotated names of a class."""
    return {field.target.id: field for field in node.body if isinstance(field, ast.AnnAssign)}


def class_lines(stub, lines, module):
    """Return the lines of a class of a stub, the fields of a dataclass or named tuple filled in."""
    start, given = first_line(stub) - 1, fields_in(stub)
    kinds = " ".join(map(written, [*stub.decorator_list, *stub.bases]))
    fields = module.fields(stub.name) if "dataclass" in kinds or "NamedTuple" in kinds else {}
    if not fields:
        return lines[start : stub.end_lineno]
    if unknown := given.keys() - fields:
        raise LookupError(f"{stub.name} has no field {', '.join(unknown)}")
    done = max([stub.lineno, *(field.end_lineno for field in given.values())])
    texts = lines[start : stub.lineno]
    for name, field in fields.items():
        default = field.value
        if isinstance(default, ast.Call):  # field(default=...)
            default = next(word.value for word in default.keywords if word.arg == "default")
        annotation = written(given.get(name, field).annotation)
        if name not in given:
            annotation = re.sub(r"\btuple\b", "tuple[int, ...]", annotation)
        texts.append(f"    {name}: {annotation}" + (f" = {written(default)}" if default else ""))
    return [*texts, *lines[done : stub.end_lineno]]


def first_line(node):
    """Return the line where a definition begins: that of its first decorator."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


def expanded(text):
    """Return a stub with all names that hold a mark written as often as it stands for."""
    lines, pieces, done = text.splitlines(keepends=True), [], 0
    nodes = ast.parse(text).body
    while nodes:
        group = [nodes.pop(0)]
        name = getattr(group[0], "name", "")
        while nodes and name and getattr(nodes[0], "name", "") == name:
            group.append(nodes.pop(0))
        piece = "".join(lines[done : group[-1].end_lineno])
        done = group[-1].end_lineno
        for words in (DIMENSIONS, EXTREMA):
            if any(mark in name for mark in words[0]):
                # Functions follow each other without an empty line.
                more = piece.lstrip("\n") if isinstance(group[0], ast.FunctionDef) else piece
                pieces += [replaced(piece if i == 0 else more, w) for i, w in enumerate(words)]
                piece = ""
        pieces.append(piece)
    return "".join(pieces)


def replaced(text, words):
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text


def stub_text(text, module, package):
    """Return the stub of a module, complete."""
    text = expanded(text)
    lines, pieces, done = text.splitlines(), [], 0
    exported = module.exported()
    for node in ast.parse(text).body:
        if exported and not isinstance(node, (ast.ImportFrom, ast.Import, ast.Expr)):
            pieces += ["", "__all__ = [", *(f'    "{name}",' for name in exported), "]"]
            exported = None
        start = first_line(node) - 1
        pieces += lines[done:start]
        function = isinstance(node, ast.FunctionDef) and module.defined(node.name)
        if function:
            pieces.append(definition(node, function, package))
        elif isinstance(node, ast.ClassDef):
            pieces += class_lines(node, lines, module)
        else:
            pieces += lines[start : node.end_lineno]
        done = node.end_lineno
    return "\n".join([*pieces, *lines[done:], ""])


def renamed(sources):
    """Return the functions of maxima in some stubs, as those of minima."""
    pieces = []
    for text in sources:
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and "max_pool" in node.name:
                pieces += lines[first_line(node) - 1 : node.end_lineno]
    return replaced("\n".join(["", *pieces, ""]), {"max_": "min_", "MaxPool": "MinPool"})


def main():
    folder = FOLDER / "fastpool"
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("**/*.pyi"))}
    minima, *maxima = (folder / f"_api/{name}.pyi" for name in ("minimum", "maximum", "adaptive"))
    if minima in texts:
        texts[minima] += renamed([texts[source] for source in maxima])
    for source, text in texts.items():
        path = FOLDER.parent / source.relative_to(FOLDER)
        module = Module(path.with_suffix(".py"))
        path.write_text(stub_text(text, module, path.parent.name), encoding="utf-8")


if __name__ == "__main__":
    main()
