"""Compare fastpool with other libraries, on the workloads that all benchmarks share."""

# Library -> (module, class); the first three are not peers.
LIBRARIES = {
    "fastpool": ("peers", "Fastpool"),
    "earlier": ("peers", "Earlier"),
    "limit": ("peers", "MemoryLimit"),
    "numpy": ("mean_peers", "NumPy"),
    "scipy": ("mean_peers", "SciPy"),
    "bottleneck": ("mean_peers", "Bottleneck"),
    "xarray": ("mean_peers", "XArray"),
    "opencv": ("mean_peers", "OpenCV"),
    "onnxruntime": ("mean_peers", "OnnxRuntime"),
    "openvino": ("mean_peers", "OpenVINO"),
    "torch": ("mean_frameworks", "Torch"),
    "jax": ("mean_frameworks", "Jax"),
    "tensorflow": ("mean_frameworks", "TensorFlow"),
    "litert": ("mean_frameworks", "LiteRT"),
}
OWN = ("fastpool", "earlier", "limit")
