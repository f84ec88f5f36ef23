"""The layers of OpenVINO's models as data that can be called on arrays."""

from dataclasses import dataclass

from ._operator import adaptive_avg_pool, adaptive_max_pool, avg_pool, max_pool


@dataclass(frozen=True)
class _Layer:
    name: str | None
    version: int
    attributes: dict
    input_dims: tuple
    output_dims: tuple


class _AdaptiveLayer(_Layer):
    """A layer whose second input gives the output size."""

    def _arguments(self, output_size):
        """Return the arguments of the function after `x`; `output_size` may be None."""
        arguments = self.attributes | ({} if output_size is None else {"output_size": output_size})
        if "output_size" not in arguments:
            raise TypeError("output_size: required, because the layer does not declare it")
        return arguments


class MaxPoolLayer(_Layer):
    """A MaxPool layer of an OpenVINO model that can be called on arrays.

    :func:`read_layer` makes it.

    Attributes
    ----------
    name : str or None
        Name of the layer in its model.
    version : {1, 8, 14}
    attributes : dict
        The keywords of :func:`max_pool` that the layer gives.
    input_dims, output_dims : tuple of tuple of int
        Dimensions that the layer declares for its ports; -1 is unknown. They are not enforced. The
        layer also runs on other extents, and declarations can be wrong (the same_upper example of
        the operation's own documents declares 32 x 32, but the result is 16 x 16).
    """

    def __call__(
        self,
        x,
        *,
        layout="NCHW",
        nan="propagate",
        ceil_rule=None,
        index_layout="NCHW",
        out=None,
        out_indices=None,
        num_threads=None,
    ):
        """Run :func:`max_pool` with the layer's attributes and these arguments."""
        return max_pool(
            x,
            version=self.version,
            **self.attributes,
            layout=layout,
            nan=nan,
            ceil_rule=ceil_rule,
            index_layout=index_layout,
            out=out,
            out_indices=out_indices,
            num_threads=num_threads,
        )


class AvgPoolLayer(_Layer):
    """An AvgPool layer of an OpenVINO model that can be called on arrays.

    :func:`read_layer` makes it.

    Attributes
    ----------
    name : str or None
        Name of the layer in its model.
    version : {1, 14, 16}
    attributes : dict
        The keywords of :func:`avg_pool` that the layer gives.
    input_dims, output_dims : tuple of tuple of int
        As in :class:`MaxPoolLayer`.
    """

    def __call__(
        self,
        x,
        *,
        beyond=None,
        numerics="pairwise",
        layout="NCHW",
        nan="propagate",
        ceil_rule=None,
        out=None,
        num_threads=None,
    ):
        """Run :func:`avg_pool` with the layer's attributes and these arguments."""
        return avg_pool(
            x,
            version=self.version,
            **self.attributes,
            beyond=beyond,
            numerics=numerics,
            layout=layout,
            nan=nan,
            ceil_rule=ceil_rule,
            out=out,
            num_threads=num_threads,
        )


class AdaptiveAvgPoolLayer(_AdaptiveLayer):
    """An AdaptiveAvgPool layer of an OpenVINO model that can be called on arrays.

    :func:`read_layer` makes it.

    Attributes
    ----------
    name : str or None
        Name of the layer in its model.
    version : {8}
    attributes : dict
        The `output_size`, if the layer declares the spatial extents of its output. OpenVINO does
        so if the operation's second input is a constant. The constant itself is in another file.
    input_dims, output_dims : tuple of tuple of int
        As in :class:`MaxPoolLayer`.
    """

    def __call__(
        self,
        x,
        *,
        output_size=None,
        numerics="pairwise",
        layout="NCHW",
        nan="propagate",
        out=None,
        num_threads=None,
    ):
        """Run :func:`adaptive_avg_pool`; an `output_size` replaces that of the layer."""
        return adaptive_avg_pool(
            x,
            **self._arguments(output_size),
            numerics=numerics,
            layout=layout,
            nan=nan,
            out=out,
            num_threads=num_threads,
        )


class AdaptiveMaxPoolLayer(_AdaptiveLayer):
    """An AdaptiveMaxPool layer of an OpenVINO model that can be called on arrays.

    :func:`read_layer` makes it.

    Attributes
    ----------
    name : str or None
        Name of the layer in its model.
    version : {8}
    attributes : dict
        The `index_element_type`, if the layer gives it, and the `output_size`, as in
        :class:`AdaptiveAvgPoolLayer`.
    input_dims, output_dims : tuple of tuple of int
        As in :class:`MaxPoolLayer`.
    """

    def __call__(
        self,
        x,
        *,
        output_size=None,
        layout="NCHW",
        nan="propagate",
        index_layout="NCHW",
        out=None,
        out_indices=None,
        num_threads=None,
    ):
        """Run :func:`adaptive_max_pool`; an `output_size` replaces that of the layer."""
        return adaptive_max_pool(
            x,
            **self._arguments(output_size),
            layout=layout,
            nan=nan,
            index_layout=index_layout,
            out=out,
            out_indices=out_indices,
            num_threads=num_threads,
        )


_CLASSES = {
    "MaxPool": MaxPoolLayer,
    "AvgPool": AvgPoolLayer,
    "AdaptiveAvgPool": AdaptiveAvgPoolLayer,
    "AdaptiveMaxPool": AdaptiveMaxPoolLayer,
}


def make_layer(kind, name, version, attributes, input_dims, output_dims):
    """Return the layer of an operation of the type `kind`."""
    make = _CLASSES[kind]
    if issubclass(make, _AdaptiveLayer) and output_dims:
        size = output_dims[0][2:]
        if size and min(size) >= 0:
            attributes = attributes | {"output_size": size}
    return make(name, version, attributes, input_dims, output_dims)
