"""Compare fastpool with other libraries, on the workloads that all benchmarks share."""

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
