"""Define what fastpool's operations for OpenVINO have in common: types, shapes, plans and runs."""

import openvino

from .._planning import arguments
from .._planning.values import choice
from .._running.interop import bfloat16
from .._running.plan_cache import PlanCache

# Names of OpenVINO. "dynamic" is a type that is not known yet.
_ELEMENT_TYPES = {
    *("f16", "bf16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"),
    *("boolean", "dynamic"),
}
_INDEX_TYPES = {"int64": openvino.Type.i64, "int32": openvino.Type.i32}


class Pooling(openvino.Op):
    """A pooling that OpenVINO runs by calling fastpool.

    OpenVINO binds the thread from which it calls an operation to one processor during the call, and
    new threads would inherit that. So plans have one thread.

    A class derived from it has `class_type_info` and four methods:

    - ``_rank()``: the number of spatial axes, if it does not follow from the first input; or None;
    - ``_resolve(n)``: check the attributes for `n` spatial axes. `_native` becomes the arguments
      of fastpool, by name, and `_attributes` what OpenVINO's visitors can read: all attributes, as
      plain values and lists of these;
    - ``_output_shape(shape)``: the openvino.PartialShape of the outputs for one of the input;
    - ``_plan(shape, dtype, *arguments)``: the plan, with what ``_arguments(inputs)`` returns.
    """

    def __init__(self, inputs, attributes):
        super().__init__(self)
        self._attributes = attributes
        if inputs[0] is not None:  # else OpenVINO reads a file, and calls visit_attributes next
            # OpenVINO takes nodes or outputs, but not some of each.
            self.set_arguments([x.output(0) if isinstance(x, openvino.Node) else x for x in inputs])
            self.constructor_validate_and_infer_types()

    @classmethod
    def get_type_info(cls):
        return cls.class_type_info

    def clone_with_new_inputs(self, inputs):
        return type(self)(*inputs, **self._attributes)

    def visit_attributes(self, visitor):
        visitor.on_attributes(self._attributes)
        return True

    def validate_and_infer_types(self):
        shape, element_type = self.get_input_partial_shape(0), self.get_input_element_type(0)
        if element_type.get_type_name() not in _ELEMENT_TYPES:
            raise TypeError(f"x: fastpool has no element type {element_type.get_type_name()}")
        n = self._rank() if shape.rank.is_dynamic else len(shape) - 2
        if n is not None and not 1 <= n <= 3:
            raise ValueError(f"x: expected rank 3, 4 or 5, got {n + 2}")
        self._resolve(n)
        self._bfloat16 = bfloat16("x") if element_type == openvino.Type.bf16 else None
        self._plans = PlanCache(self._plan)
        if shape.rank.is_dynamic and n is not None:
            shape = openvino.PartialShape([-1] * (2 + n))
        outputs = shape if n is None else self._output_shape(shape)
        with_indices = self._native.get("return_indices", False)
        self.set_output_size(1 + with_indices)
        self.set_output_type(0, element_type, outputs)
        if with_indices:
            self.set_output_type(1, _INDEX_TYPES[self._native["index_dtype"]], outputs)

    def _spatial(self, rank):
        """Return the positions of the spatial axes in an array of `rank` axes."""
        first = 2 if self._native["layout"] == "NCHW" else 1
        return range(first, first + rank - 2)

    def _arguments(self, inputs):
        return ()

    def has_evaluate(self):
        return True

    def evaluate(self, outputs, inputs):
        x, y = self._values(inputs[0]), self._values(outputs[0])
        plan = self._plans.find(x, self._arguments(inputs))
        if y.shape != plan.output_shape:  # it was not known before
            for output in outputs:
                output.shape = plan.output_shape
            y = self._values(outputs[0])
        plan(x, y, *(output.data for output in outputs[1:]))
        return True

    def _values(self, tensor):
        # openvino returns bf16 as an array of float16 with its bits.
        return tensor.data if self._bfloat16 is None else tensor.data.view(self._bfloat16)


def switches(attributes):
    """Return the checked attributes that are not OpenVINO's, of those that an operation has."""
    checked = {
        "nan": arguments.nan(attributes["nan"]),
        "layout": choice(attributes["layout"], "layout", ("NCHW", "NHWC")),
    }
    for name in ("numerics", "return_indices"):
        if name in attributes:
            checked[name] = getattr(arguments, name)(attributes[name])
    return checked
