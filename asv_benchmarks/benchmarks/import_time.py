"""Time `import fastpool` after numpy was imported."""


def timeraw_import():
    return "import fastpool", "import numpy"
