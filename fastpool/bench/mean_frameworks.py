"""How the averages of the libraries in frameworks.py are called."""

from functools import partial

import numpy as np

from . import frameworks
from .frameworks import LiteModel, named_padding
from .mean_peers import EIGHT_BITS, accumulator, with_window
from .means import divisors
from .peers import along_axes, fresh, zero_pads


class Torch(frameworks.Torch):
    """torch, in five ways: those of maxima, and the mean over axes for one window per plane.

    One window per plane is an adaptive pooling to 1.
    """

    def function(self, workload, x):
        tensor, call = self._prepared(workload, x, self.torch.nn.functional)
        if call and tensor.is_floating_point():
            return lambda: call(tensor), lambda: (self._array(workload, call(tensor)),)

    def out(self, workload, x):
        if len(workload.sizes) == 1:
            return
        tensor, call = self._prepared(workload, x, self.torch._C._nn)
        if call and tensor.is_floating_point():
            y = self._tensor(workload, fresh(workload.output_shape, x.dtype))
            return lambda: call(tensor, out=y), lambda: (self._array(workload, y),)

    def mean(self, workload, x):
        if not workload.is_global or workload.dtype in EIGHT_BITS:
            return
        tensor, axes = self._tensor(workload, x), [*range(2, x.ndim)]
        y = self._tensor(workload, fresh(workload.output_shape, x.dtype))
        call = partial(self.torch.mean, tensor, axes, True, out=y)
        return call, lambda: (self._array(workload, y),)

    def onednn(self, workload, x):
        if workload.channels_last or len(workload.sizes) == 1:
            return
        if workload.dtype not in ("float32", "bfloat16"):
            return
        tensor, call = self._prepared(workload, x, self.torch.nn.functional)
        if call:
            tensor = tensor.to_mkldnn()
            dtype = self.torch.bfloat16 if workload.dtype == "bfloat16" else None
            result = lambda: self._array(workload, call(tensor).to_dense(dtype))  # noqa: E731
            return lambda: call(tensor), lambda: (result(),)

    def quantized(self, workload, x):
        if workload.kind == "qlinear" or workload.dtype not in EIGHT_BITS:
            return
        torch, n = self.torch, len(workload.sizes)
        tensor, call = self._prepared(workload, x, torch.nn.functional)
        if call and n > 1:
            tensor = torch._make_per_tensor_quantized_tensor(tensor, 1.0, 0)
            if workload.channels_last:
                tensor = tensor.contiguous(memory_format=torch.channels_last)
            result = lambda: self._array(workload, call(tensor).int_repr())  # noqa: E731
            return lambda: call(tensor), lambda: (result(),)

    def _prepared(self, workload, x, functions):
        """Return a tensor and a function that pools it, or None if torch has no such window."""
        n, tensor = len(workload.sizes), self._tensor(workload, x)
        if workload.output_size or workload.is_global:
            pool = getattr(functions, f"adaptive_avg_pool{n}d")
            return tensor, partial(pool, output_size=workload.output_sizes)
        window = self._window(workload)
        if not window or (n == 1 and workload.channels_last):
            return tensor, None
        *window, _, ceil_mode = window  # without dilations
        arguments = zip(("kernel_size", "stride", "padding"), window, strict=True)
        rest = {"ceil_mode": ceil_mode, "count_include_pad": workload.count_include_pad}
        return tensor, partial(getattr(functions, f"avg_pool{n}d"), **dict(arguments), **rest)

    ways = frameworks.Torch.ways | {
        "avg": {
            "torch": function,
            "torch-out": out,
            "torch-mean": mean,
            "torch-onednn": onednn,
            "torch-quantized": quantized,
        }
    }


class Jax(frameworks.Jax):
    """JAX: a compiled reduce_window that adds, and a division."""

    def averaged(self, workload, x):
        workload = with_window(workload)
        if not workload or workload.kind == "qlinear":
            return
        lax, wide = self.jax.lax, accumulator(x.dtype)
        pads = zip(*zero_pads(workload), strict=True)
        settings = {
            "window_dimensions": along_axes(workload, workload.kernel_shape, 1),
            "window_strides": along_axes(workload, workload.strides, 1),
            "padding": along_axes(workload, pads, (0, 0)),
        }
        counts = divisors(workload)
        if (counts == counts.flat[0]).all():
            counts = counts.flat[0]
        counts = counts.astype(wide)

        def mean(a):
            total = lax.reduce_window(a.astype(wide), wide.type(0), lax.add, **settings)
            return (total // counts if wide.kind == "i" else total / counts).astype(x.dtype)

        return self._compiled(mean, x)

    def reduced(self, workload, x):
        if not workload.is_global or workload.dtype in EIGHT_BITS:
            return
        axes, numpy = workload.spatial_axes, self.jax.numpy
        return self._compiled(lambda a: numpy.mean(a, axes, keepdims=True).astype(x.dtype), x)

    def _compiled(self, function, x):
        pool, tensor = self.jax.jit(function), self.jax.numpy.asarray(x)
        call = lambda: pool(tensor).block_until_ready()  # noqa: E731
        return call, lambda: (np.asarray(call()),)

    ways = frameworks.Jax.ways | {"avg": {"jax": averaged, "jax-mean": reduced}}


class TensorFlow(frameworks.TensorFlow):
    """TensorFlow: raw operators, called eagerly; means only of real taps."""

    def raw(self, workload, x):
        workload = with_window(workload)
        if not workload or workload.dtype in EIGHT_BITS:
            return
        n, padding = len(workload.sizes), named_padding(workload)
        counted = workload.count_include_pad and padding == "SAME"
        if n == 1 or not padding or counted:
            return
        operators, spatial = self.tensorflow.raw_ops, "DHW"[-n:]
        settings = {
            "ksize": along_axes(workload, workload.kernel_shape, 1),
            "strides": along_axes(workload, workload.strides, 1),
            "padding": padding,
            "data_format": f"N{spatial}C" if workload.channels_last else f"NC{spatial}",
        }
        tensor = self.tensorflow.constant(x)
        pool = partial(operators.AvgPool, value=tensor, **settings)
        if n == 3:
            pool = partial(operators.AvgPool3D, input=tensor, **settings)
        return pool, lambda: (pool().numpy(),)

    def reduced(self, workload, x):
        if not workload.is_global or workload.dtype in EIGHT_BITS:
            return
        axes = self.tensorflow.constant(workload.spatial_axes)
        settings = {"input": self.tensorflow.constant(x), "axis": axes, "keep_dims": True}
        call = partial(self.tensorflow.raw_ops.Mean, **settings)
        return call, lambda: (call().numpy(),)

    ways = frameworks.TensorFlow.ways | {"avg": {"tensorflow": raw, "tensorflow-mean": reduced}}


class LiteRT(frameworks.LiteRT):
    """LiteRT: a model of one operator, after padding with zeros if they are counted."""

    def averaged(self, workload, x):
        workload = with_window(workload)
        if not workload or not self._takes(workload):
            return
        model = LiteModel(self.schema, self.dtypes[workload.dtype])
        first, y = model.tensor(workload.shape), model.tensor(workload.output_shape)
        source, padding = first, named_padding(workload)
        if padding != "VALID" and workload.count_include_pad and not workload.ceil_mode:
            pads = zip(*zero_pads(workload), strict=True)
            source, padding = model.padded(first, pads, np.zeros(1, x.dtype)), "VALID"
        if padding:
            versions = {"int8": 2, "int16": 3}
            version = versions.get(workload.dtype, 1)
            model.pool("AVERAGE_POOL_2D", version, workload, source, y, padding)
            return self._interpreted(x, model.packed(self.builder, first, y))

    def reduced(self, workload, x):
        if not workload.is_global or not self._takes(workload):
            return
        model = LiteModel(self.schema, self.dtypes[workload.dtype])
        first, y = model.tensor(workload.shape), model.tensor(workload.output_shape)
        options = self.schema.ReducerOptionsT()
        options.keepDims = True
        inputs = [first, model.integers(workload.spatial_axes)]
        model.operator("MEAN", 2, inputs, y, options)
        return self._interpreted(x, model.packed(self.builder, first, y))

    def _takes(self, workload):
        images = workload.channels_last and len(workload.sizes) == 2
        return images and workload.kind != "qlinear" and workload.dtype in self.dtypes

    ways = frameworks.LiteRT.ways | {"avg": {"litert": averaged, "litert-mean": reduced}}
