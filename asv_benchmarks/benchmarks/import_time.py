"""What `import fastpool` costs where numpy is there already."""


def timeraw_import():
    return "import fastpool", "import numpy"
