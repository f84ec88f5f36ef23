"""Fail if a hot loop of a build does not use that build's vectors.

    python ci/check_vectorised.py [DIRECTORY]

DIRECTORY holds the extension modules. Without it, those of the installed fastpool are read. For
every build and element type, the disassembly of the functions named below must satisfy:

- each has an innermost loop with the packed maximum (or comparison, or addition of doubles) in
  registers as wide as the build's vectors;
- none has an innermost loop with a scalar maximum, as an instruction or as a comparison of elements
  followed by a jump, a conditional move or a set.

Loops that gcc has put elsewhere are not checked, nor are 64-bit integers in the baseline: SSE2 does
not compare them, and their loops are scalar.

Needs modules that are not stripped, of x86-64 or aarch64, and objdump. $OBJDUMP names that of a
cross compiler.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).parents[1] / "fastpool" / "_kernels.pyx"
SOURCES = sorted(KERNELS.with_name("kernels").glob("**/*.pxi"))

REGISTERS = {"baseline": "xmm", "avx2": "ymm", "avx512": "zmm"}
REGISTERS["neon"] = r"v\d+\.(16b|8h|4s|2d)|^(ld|st)[rp] q|^(ld|st)p x"  # copies of 16 bytes
NEON_LANES = {8: "16b", 16: "8h", 32: "4s", 64: "2d"}
NAMES = {"float": "float32", "double": "float64"}  # others: the C name without "_t"

# Functions with the loops of one element type. `key_t` types are those of pairs, `ordered` those
# of windows with indices in registers. After a bar: what the first may be inlined into.
REQUIRED = {
    "number": ("window_run", "window_column", "van_herk|van_herk_rows", "column_pass"),
    "ordered": ("tile_taps",),
    "key_t": ("pair_column_pass|pair_box", "pair_row_pass"),
}
# Functions that not every build has, or not for every type.
WHERE_PRESENT = {
    "number": (
        *("pool_slide_down", "pool_stride_two", "pool_apart", "pool_flat_planes"),
        *("pool_whole_plane", "pool_planes"),
    ),
    "ordered": (),
    "key_t": (),
}
# Functions with narrower loops, or loops inlined from others: only scalar loops are looked for.
NOT_SCALAR = {
    "number": ("narrow_rows", "window_rows", "tile_values"),
    "ordered": (),
    "key_t": (),
}
# Functions into which gcc may inline `pool_few`. Its loops are scalar, because its planes are
# shorter than a vector.
HAS_POOL_FEW = "pool_planes", "tile_values"
# Functions of other headers: some innermost loop of each uses vectors. The storer of bools is a
# jump to that of uint8.
HEADERS = re.compile(
    r"(?!b8_L\d+_store)[a-z]+\d+_L\d+_(load|store)|has_(nan|margin)_\w+|store_indices_\w+"
    r"|fill_(bytes|positions_\w+)|store_bools|plane_outside_\w+"
    r"|add_to_sums|take_parts|quick_divide_\w+|to_(floats|doubles)_(f16|bf16|f64)"
    r"|add_counted_\w+|add_f64_of_\w+|pixels_f\w+|slide_sums_f\w+"
    r"|indices_of_32_\w+|keys_of_\w+|fold_[12]"
)


# Elements whose minima are taken as maxima of the opposite order, and what they hold.
MIN = {"min_f32_t": "float", "min_f64_t": "double", "min_u8_t": "uint8_t", "min_u16_t": "uint16_t"}


def width(element):
    """Return the bits of a C type."""
    element = MIN.get(element, element)
    return {"float": 32, "double": 64}.get(element) or int(re.search(r"\d+", element)[0])


def registers(build, element):
    """Return a regular expression for the build's vectors; NEON operands also name the element."""
    if build == "neon":
        return rf"v\d+\.{NEON_LANES[width(element)]}"
    return REGISTERS[build]


def maximum(build, fused, element):
    """Return a regular expression for the main instruction of an element type's loops, or None.

    If an instruction set has no maximum of a type, the loops compare and blend.
    """
    if element in MIN:
        if build == "baseline" and element == "min_u16_t":  # (there is no unsigned comparison)
            return "psubusw"
        return maximum(build, fused, MIN[element]).replace("max", "min")
    bits = width(element)
    unsigned = element.startswith("u")
    if build == "neon":
        if element in ("float", "double"):
            return "fcm[gl][te]" if fused == "ordered" else "fmax(nm)?"
        if fused != "number" or bits == 64:
            return "cm([gl][te]|h[is])"
        return "umax" if unsigned else "smax"
    if element in ("float", "double"):
        suffix = "ps" if element == "float" else "pd"
        return f"cmp(gt|lt|le|nle)(_oq|_os)?{suffix}" if fused == "ordered" else f"max{suffix}"
    letter = {8: "b", 16: "w", 32: "d", 64: "q"}[bits]
    if build == "baseline" and letter == "q":
        return None
    if fused != "number":
        return f"pcmp(gt|lt|le|nle){letter}" if build == "avx512" else f"pcmpgt{letter}"
    if build == "avx512" or (build == "avx2" and letter != "q"):
        return f"pmax{'u' if unsigned else 's'}{letter}"
    simple = {"uint8_t": "pmaxub", "int16_t": "pmaxsw", "uint16_t": "psubusw"}
    return simple.get(element, f"pcmpgt{letter}")


SCALAR_FLOAT = re.compile(r"v?max(ss|sd)|v?u?comis[sd]|fcmpe?$")
# Elements are compared in narrow registers or from memory, positions and counts in 64 bits.
CONSTANT = re.compile(r", *#?(0x[0-9a-f]+|\d+)$")
NARROW = re.compile(
    r"([abcd][lh]|[sd]il|[sb]pl|[abcd]x|[sd]i|[sb]p|e[abcd]x|e[sd]i|e[sb]p|r\d+[bwd])\b|w\d+, w\d+"
    r"|\b(BYTE|WORD|DWORD) PTR"
)
ORDER = "(l|le|g|ge|b|be|a|ae|s|ns)$"
ARM_ORDER = r"\.(lt|le|gt|ge|cc|ls|hi|cs|mi|pl)$"
DECISION = re.compile(f"(j|cmov|set){ORDER}|(b|cs[a-z]+){ARM_ORDER}")
# 64-bit elements look like positions, except that the end of a loop is no conditional move. They
# are distinguished only in functions whose innermost loops compute no positions.
MOVE = re.compile(f"(cmov|set){ORDER}|cs[a-z]+{ARM_ORDER}")
WITHOUT_PLACES = ("window_run", "window_column", "narrow_rows")

JUMP = re.compile(r"j|b(\.\w+)?$|[ct]bn?z$")


def functions(path):
    """Return name -> [(address, mnemonic, operands)] for every function of a module."""
    command = [os.environ.get("OBJDUMP", "objdump"), "-d", "--no-show-raw-insn", str(path)]
    if "aarch64" not in path.name:
        command += ["-M", "intel"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    code = []
    for line in listing.splitlines():
        if head := re.fullmatch(r"[0-9a-f]+ <(.+)>:", line):
            code = found.setdefault(head[1], [])
        elif step := re.match(r" *([0-9a-f]+):\t(?:(?:bnd|notrack|data16) )*(\S+)\s*(.*)", line):
            mnemonic, operands = step[2], step[3].partition("\t//")[0]
            if re.match("cs[a-z]+$", mnemonic):  # aarch64: the condition is the last operand
                mnemonic += "." + operands.rpartition(" ")[2]
            code.append((int(step[1], 16), mnemonic, operands))
    return found


def innermost_loops(code):
    """Yield the innermost spans of backward jumps, as lists of (address, mnemonic, operands)."""
    first = code[0][0] if code else 0
    spans = set()
    for address, mnemonic, operands in code:
        target = JUMP.match(mnemonic) and re.match(r"(?:.*, )?([0-9a-f]+) <", operands)
        if target and first <= int(target[1], 16) <= address:
            spans.add((int(target[1], 16), address))
    for low, high in sorted(spans):
        if not any((low, high) != (a, b) and low <= a and b <= high for a, b in spans):
            yield [step for step in code if low <= step[0] <= high]


def is_scalar(loop, function, element):
    """Does the loop take maxima of elements, or compare them, one by one?"""
    if element in ("float", "double"):
        return any(SCALAR_FLOAT.match(mnemonic) for _, mnemonic, _ in loop)
    wide = element.endswith("64_t")
    if wide and function not in WITHOUT_PLACES:
        return False
    for i, (_, mnemonic, operands) in enumerate(loop):
        if CONSTANT.search(operands):  # (a strategy, say; elements are compared with elements)
            continue
        if mnemonic == "cmp" and (wide or NARROW.match(operands)):
            following = [step[1] for step in loop[i + 1 : i + 3]]
            if any((MOVE if wide else DECISION).match(name) for name in following):
                return True
    return False


def fused_types():
    """Return {"number": [C types in the order of specialisations], ...} from the sources."""
    text = "".join(path.read_text() for path in (KERNELS, *SOURCES))
    fused = r"^ctypedef fused (number|ordered|key_t):.*\n((?:    \w+\n)+)"
    blocks = re.findall(fused, text, re.MULTILINE)
    return {name: block.split() for name, block in blocks}


def check(path):
    """Yield complaints about one module."""
    build = re.match(r"_kernels(?:_(\w+?))?\.", path.name)[1] or "baseline"
    if "aarch64" in path.name:
        build = "neon"
    bodies = {}  # (specialisation, function) -> loops; gcc splits functions into .part and the like
    for name, code in functions(path).items():
        if HEADERS.fullmatch(name):
            steps = (step for loop in innermost_loops(code) for step in loop)
            if not any(re.search(REGISTERS[build], f"{step[1]} {step[2]}") for step in steps):
                yield f"{build}, {name}: no loop with vectors"
        elif match := re.match(r"__pyx_fuse_(\d+)__pyx_f_.*_kernels(?:_avx\d+)?_(\w+)", name):
            bodies.setdefault((int(match[1]), match[2]), []).extend(innermost_loops(code))
    types = fused_types()
    for fused, elements in types.items():
        for number, element in enumerate(elements):
            instruction = maximum(build, fused, element)
            if instruction is None:
                continue
            register = registers(build, element)
            for function in REQUIRED[fused] + WHERE_PRESENT[fused] + NOT_SCALAR[fused]:
                if build == "neon" and function in HAS_POOL_FEW:
                    continue
                names = [name for name in function.split("|") if (number, name) in bodies]
                loops = bodies[number, names[0]] if names else None
                if loops is None and function not in REQUIRED[fused]:
                    continue
                for complaint in complaints(loops, function, element, instruction, register):
                    yield f"{build}, {NAMES.get(element, element[:-2])}, {function}: {complaint}"


def complaints(loops, function, element, instruction, register):
    """Yield complaints about the innermost loops of one function for one element type."""
    if loops is None:
        yield "no such function; is REQUIRED out of date?"
        return
    packed = re.compile(rf"v?({instruction})$")
    if function not in NOT_SCALAR["number"]:
        steps = [step for loop in loops for step in loop]
        if not any(packed.match(name) and re.search(register, args) for _, name, args in steps):
            yield f"no loop with {instruction} of {register} registers"
    if function in HAS_POOL_FEW:
        return
    for loop in loops:
        if not any(packed.match(step[1]) for step in loop) and is_scalar(loop, function, element):
            yield f"scalar loop at {loop[0][0]:#x}"


def main(arguments):
    if arguments:
        directory = Path(arguments[0])
    else:
        directory = Path(importlib.util.find_spec("fastpool").origin).parent
    modules = sorted(directory.glob("_kernels*.so"))
    if not modules:
        sys.exit(f"no _kernels*.so in {directory}")
    found = [complaint for module in modules for complaint in check(module)]
    print(*found, f"{len(modules)} builds in {directory}: {len(found)} complaints", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
