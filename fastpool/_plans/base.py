"""What all plans have in common: they do not change, and what a process prepares is kept in them.

Plans of windows can be cut into tiles, explained and drawn.
"""

from dataclasses import FrozenInstanceError

from .._planning.borders import canonical
from .._planning.geometry import AdaptiveAxis, Axis, Border, Given, GivenSize
from .._planning.plan_checks import pickled_state, record, records, restore_fields
from .._running.plan_cache import PLAN_BYTES, keep_within_limit


class _Plan:
    """What plans have in common: a slot for what this process prepared, and their pickles.

    The slot is `_prepared`, and the compiled function is `_run`. `_resolved` are the fields as
    `resolve` returned them. These are stored with the fields, but are no part of a pickle.
    """

    # How many plans it keeps at most, for parts of arrays.
    _most_parts = 1

    def __setattr__(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _count_tables_in(self, counter):
        """Let a cache count the tables that compiled code will have: ``counter[0]`` are bytes."""
        vars(self)["_counter"] = counter

    def _keep(self, prepared):
        vars(self).update(_prepared=prepared, _run=prepared.run)
        compiled = getattr(prepared.once or prepared, "pooling", None)
        tables, counter = getattr(compiled, "table_bytes", 0), vars(self).get("_counter")
        if tables > PLAN_BYTES and counter is not None:
            counter[0] += tables
            keep_within_limit()
        return prepared

    def __getstate__(self):
        return pickled_state(self)

    def _restore(self, state, **kinds):
        for name in ("_prepared", "_run", "_resolved", "_counter"):  # of other fields
            vars(self).pop(name, None)
        restore_fields(self, state, **kinds)


def _axes(value):
    """Return the axes of a pickle; their lengths tell the kinds apart."""
    return records(Axis)(records(AdaptiveAxis)(value))


def _given(value):
    return record(Given)(record(GivenSize)(value))


def _borders(value):
    value = records(Border)(value)
    return tuple(map(canonical, value)) if type(value) is tuple else value


class _WindowPlan(_Plan):
    """What plans of poolings over windows have in common."""

    # Fields besides `axes` and `given` that hold records: functions that rebuild them.
    _more_records = {"borders": _borders}

    def tile(self, outputs):
        """Return the part of this pooling that gives some of its outputs.

        Parameters
        ----------
        outputs : tuple of slice
            The outputs along each axis. Axes that are left out are taken whole.

        Returns
        -------
        tile : Tile
            A tuple of three: `plan`, the plan of the part; `read`, the slices of the input that it
            takes; `write`, the slices of the output that it gives. ``tile.plan(x[tile.read])``
            equals ``plan(x)[tile.write]``. Indices count in the whole of `x`.

        Raises
        ------
        TypeError, ValueError
            `outputs` holds something other than slices, too many of them, or a slice with a step.

        Examples
        --------
        >>> import numpy as np
        >>> import fastpool
        >>> plan = fastpool.plan_max_pool(
        ...     (8, 100), "float32", 3, strides=2, pads=1, layout="HW", return_indices=True
        ... )
        >>> part, read, write = plan.tile(np.s_[1:3, 20:40])
        >>> read, part.output_shape
        ((slice(1, 6, None), slice(39, 80, None)), (2, 20))
        """
        from .._planning import parts  # here, so that importing fastpool stays fast

        return parts.tile(self, outputs)

    def explain(self, *, verbose=False):
        """Describe in words what this pooling does, and how.

        Parameters
        ----------
        verbose : bool
            Add the lines "not by": why this machine takes no better strategy.

        Returns
        -------
        text : str
            The rules used and their result along each axis, windows that hang over the edge or are
            empty, what means are divided by, types, indices, and how this machine runs a call.

        Examples
        --------
        >>> import fastpool
        >>> plan = fastpool.plan_max_pool((6, 6), "uint8", 3, strides=2, layout="HW")
        >>> print(plan.explain())  # doctest: +ELLIPSIS
        MaxPoolPlan: uint8 HW (6, 6) -> (2, 2)
        ...
        """
        from .._showing import explain  # here, so that importing fastpool stays fast

        return explain.explain(self, verbose)

    def draw(self, *, axes=None, title=None, width=None):
        """Draw the windows over the input and its padding.

        The windows of each axis, with the numbers of their outputs, are drawn above and to the left
        of the grid. For averages they also show what a sum is divided by. Of long axes only the
        ends are drawn.

        Parameters
        ----------
        axes : str or sequence of str, optional
            One or two spatial axes by their names in `layout`, as in "HW". From four spatial axes
            on the names are "D1", "D2", ... All by default.
        title : str, optional
            Shapes and attributes by default. "" means no title.
        width : float, optional
            Width of the figure in inches. By default it depends on the geometry.

        Returns
        -------
        figure : matplotlib.figure.Figure
            ``figure.savefig("windows.svg")`` writes the same bytes every time.

        Raises
        ------
        ImportError
            matplotlib is not installed: ``pip install "fastpool[plot]"``.
        TypeError, ValueError
            `axes` names an unknown axis or more than two axes, or is None for a plan with more than
            two spatial axes.

        Examples
        --------
        >>> import fastpool
        >>> plan = fastpool.plan_max_pool((6, 6), "uint8", 3, strides=2, layout="HW")
        >>> plan.draw().savefig("windows.svg")  # doctest: +SKIP
        """
        from .._showing import draw  # needs matplotlib

        return draw.draw(self, axes, title, width)

    def _repr_html_(self):
        from .._showing import explain

        return explain.as_html(self)

    def _prepared_for(self, dtype):
        """Return what this process prepared for the plan; prepare it for `dtype` if there is none.

        `_keep` stores it.
        """
        prepared = getattr(self, "_prepared", None)
        if prepared is None or not prepared.fits(self):
            prepared = self._keep(self._prepare(dtype))
        return prepared

    def __setstate__(self, state):
        self._restore(state, axes=_axes, given=_given, **self._more_records)

    def _shown(self, name, dtype, usual):
        """Return a repr with the fields that differ from `usual`."""
        usual = {
            "strides": (1,) * len(self.axes),
            "pads": (0, 0) * len(self.axes),
            "dilations": (1,) * len(self.axes),
            **usual,
        }
        parts = [f"kernel_shape={self.kernel_shape}"]
        if isinstance(self.given, GivenSize):
            parts = [f"output_size={self.given.output_size}"]
            del usual["strides"]
        for field, value in usual.items():
            if getattr(self, field) != value:
                parts.append(f"{field}={getattr(self, field)!r}")
        return (
            f"<{name} {dtype} {self.layout} {self.input_shape} -> {self.output_shape}, "
            f"{', '.join(parts)}>"
        )
