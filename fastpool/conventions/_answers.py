"""The attributes that are compared, and the answer of one convention."""

from typing import NamedTuple

from .._planning import max_pool
from .._planning.geometry import CEIL_HINT
from .._planning.windows import windows_of


class Answer(NamedTuple):
    """The result of one convention for the attributes.

    Attributes
    ----------
    name : str
    call : str
        How the attributes are written in that convention.
    output_shape : tuple of int or None
        Spatial extents; None if it refuses.
    problem : str
        Why it refuses; "" if it does not.
    notes : tuple of str
        Further facts, such as implementations that differ.
    windows : tuple
        The positions of the windows of each axis, for drawings.
    """

    name: str
    call: str
    output_shape: tuple | None
    problem: str = ""
    notes: tuple = ()
    windows: tuple = ()


class Asked(NamedTuple):
    """The attributes in canonical form."""

    sizes: tuple
    kernel: tuple
    strides: tuple
    pads: tuple
    dilations: tuple
    auto_pad: str
    ceil_mode: bool
    op: str
    count_include_pad: bool
    dtype: str | None

    def __str__(self):
        words = [f"size {self.sizes}", f"kernel_shape {self.kernel}", f"strides {self.strides}"]
        words += [f"pads {self.pads}"] * any(self.pads)
        words += [f"dilations {self.dilations}"] * (max(self.dilations) > 1)
        words += [f"auto_pad {self.auto_pad}"] * (self.auto_pad != "NOTSET")
        words += ["ceil_mode"] * self.ceil_mode
        words += [f"op {self.op}"] * (self.op != "max")
        words += ["count_include_pad"] * self.count_include_pad
        words += [f"dtype {self.dtype}"] * (self.dtype is not None)
        return ", ".join(words)

    @property
    def same(self):
        return self.auto_pad.startswith("SAME")

    @property
    def extents(self):
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    def answer(self, name, call, notes=(), ceil_rule="clip", **changed):
        """Return the answer of fastpool for these attributes, some of them `changed`."""
        asked = self._replace(**changed)
        try:
            fields = max_pool.resolve(
                (1, 1, *asked.sizes),
                "uint8",
                asked.kernel,
                strides=asked.strides,
                pads=asked.pads,
                dilations=asked.dilations,
                auto_pad=asked.auto_pad,
                ceil_mode=asked.ceil_mode,
                ceil_rule=ceil_rule,
            )
            plan = max_pool.MaxPool(**fields)
        except ValueError as error:
            problem = str(error).removesuffix(CEIL_HINT)
            return Answer(name, call, None, problem, tuple(notes))
        return Answer(name, call, plan.output_shape[2:], "", tuple(notes), windows_of(plan))


def dropped(windows):
    """Return in words the windows that rounding up would have added; "" if there are none."""
    return " and ".join(
        named(windows, i, w.dropped[-1]) for i, w in enumerate(windows) if w.dropped
    )


def named(windows, i, output):
    """Return in words an output along axis `i`."""
    return f"window {output}" if len(windows) == 1 else f"window {output} of axis {i}"
