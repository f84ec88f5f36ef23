"""Comparison with other libraries, and the workloads that every benchmark shares."""

# Library -> (module, class); the first three are not peers.
LIBRARIES = {
    "fastpool": ("peers", "Fastpool"),
    "earlier": ("peers", "Earlier"),
    "limit": ("peers", "MemoryLimit"),
    "numpy": ("peers", "NumPy"),
    "scipy": ("peers", "SciPy"),
    "opencv": ("peers", "OpenCV"),
    "onnxruntime": ("peers", "OnnxRuntime"),
    "openvino": ("peers", "OpenVINO"),
    "torch": ("frameworks", "Torch"),
    "jax": ("frameworks", "Jax"),
    "tensorflow": ("frameworks", "TensorFlow"),
    "litert": ("frameworks", "LiteRT"),
}
OWN = ("fastpool", "earlier", "limit")
