"""Resolve what a pooling computes to Python integers, without arrays or compiled code."""
