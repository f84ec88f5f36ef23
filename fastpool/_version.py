"""The version. setup.py adds the commit to a development version that is built from git."""

__version__ = "0.2.0.dev0"
