"""Comparison with other libraries, and the workloads that every benchmark shares."""
