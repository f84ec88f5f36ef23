"""Settings of Sphinx: `sh ci/docs.sh` builds the site into build/docs/html.

Sphinx makes the drawings and runs the gallery with the installed fastpool.
"""

import os
import sys
import warnings
from importlib import metadata
from pathlib import Path

import fastpool

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # the extension drawing.py, and pictures.py

project = "fastpool"
author = "fastpool developers"
copyright = "fastpool developers"
version = release = fastpool.__version__

extensions = [
    "drawing",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
default_role = "code"
nitpicky = True
smartquotes = False
python_use_unqualified_type_names = True
add_function_parentheses = False
toc_object_entries_show_parents = "hide"

# Link to pages on the network only if there is a network: on Read the Docs.
if os.environ.get("READTHEDOCS"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable/", None),
        "python": ("https://docs.python.org/3/", None),
    }

# ------------------------------------------------------------------------- pages in Markdown

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# ------------------------------------------------------------------------------ docstrings

autodoc_member_order = "bysource"
# These packages are large, and only pages of the reference need them.
autodoc_mock_imports = ["onnxruntime", "openvino", "torch"]
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_validation_checks = {
    "all",  # but
    *("ES01", "EX01", "SA01"),  # an extended summary, examples and "see also" are optional
    "GL01",  # the summary may be on the line of the quotes
    *("PR03", "PR04"),  # "layout, nan, out: as in max_pool" needs no types, and comes last
    *("RT02", "RT03"),  # results have names
}
# Fields are described as attributes. A function that repeats another one, or one of another
# library, refers to it.
numpydoc_validation_exclude = {
    r"fastpool\.((Max|Min|Avg)Pool|Unpool)Plan$",
    r"fastpool\.LpPoolPlan\b",
    r"fastpool\.plan_(min|(global|adaptive)_(avg|max|min|lp))_pool$",
    r"fastpool\.(dask|files|xarray)\.(global|adaptive)_min_pool$",
    r"fastpool\.onnx\.(Backend|InferenceSession)\b",
    r"fastpool\.conventions\.(Answer|Comparison)\b",
    r"fastpool\.xarray\.(Coarsen|Rolling)\b",
    r"fastpool\.openvino\.(Adaptive)?(Avg|Max)PoolLayer$",
    r"fastpool\.torch\.Replaced$",
    r"fastpool\.torch\.(Adaptive)?(Avg|Max|LP)(Unp|P)ool\dd$",
    r"fastpool\.torch\.(adaptive_)?(avg|max|lp)_(un)?pool[13]d$",
}
nitpick_ignore_regex = [("py:.*", r"torch\..*")]

# Copies of examples have neither prompts nor what is printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# --------------------------------------------------------------------------------- gallery

warnings.filterwarnings("ignore", message=".*Matplotlib is currently using agg.*")
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10_000,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib", "drawing.without_torch"),
}

# -------------------------------------------------------------------------------- the theme

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["fastpool.css"]
html_title = f"fastpool {release}"
html_show_sourcelink = False
html_copy_source = False
urls = dict(
    value.split(", ", 1) for value in metadata.metadata("fastpool").get_all("Project-URL", [])
)
html_theme_options = {
    "logo": {"text": "fastpool"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "icon_links": [
        {"name": name, "url": url, "icon": "fa-solid fa-code-branch"}
        for name, url in urls.items()
        if name == "Repository"
    ],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages that have no pages below them need no sidebar.
html_sidebars = {
    page: [] for page in ("index", "start", "semantics", "averages", "performance", "inside")
}


def to_pages(app, page, text):
    """Turn links to files of the checkout into links to pages. Remove the empty line that doctest
    needs after the last output of an example."""
    text[0] = text[0].replace("(../SECURITY.md)", "(security.md)").replace("\n\n```\n", "\n```\n")


def without_mocks(app, what, name, obj, options, signature, returns):
    """Show "(...)" for a class of a mocked package, which has no signature."""
    return ("(...)" if signature == "(*args, **kwargs)" else signature), returns


def setup(app):
    app.connect("source-read", to_pages)
    app.connect("autodoc-process-signature", without_mocks)
