"""A directive whose body is Python that makes a matplotlib figure: a picture of the page.

    ```{drawing} What the picture shows, for those who do not see it
    plan = fastpool.plan_max_pool((7,), "float32", 3, strides=2, layout="W")
    plan.draw()
    ```

The last line is an expression, the figure. `fastpool`, `np`, `plt` and `pictures` are there. With
``:code:`` the body is shown too.
"""

import ast
import hashlib
import io
import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from docutils import nodes  # noqa: E402
from docutils.parsers.rst import directives  # noqa: E402
from sphinx.util.docutils import SphinxDirective  # noqa: E402

import fastpool  # noqa: E402

# Equal builds give equal files.
STYLE = {"svg.hashsalt": "fastpool", "font.size": 10, "figure.facecolor": "white"}


def figure_of(code):
    """The figure that the code's last line gives."""
    import pictures

    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value)
    names = {"fastpool": fastpool, "np": np, "plt": plt, "pictures": pictures}
    exec(compile(tree, "<drawing>", "exec"), names)
    return eval(compile(last, "<drawing>", "eval"), names)


class Drawing(SphinxDirective):
    has_content = True
    required_arguments = 1  # the text in the place of the picture
    final_argument_whitespace = True
    option_spec = {"code": directives.flag}

    def run(self):
        code = textwrap.dedent("\n".join(self.content))
        with matplotlib.rc_context(STYLE):
            figure = figure_of(code)
            file = io.BytesIO()
            figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
            plt.close(figure)
        name = f"{hashlib.sha256(file.getvalue()).hexdigest()[:16]}.svg"
        folder = Path(self.env.srcdir) / "_generated"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(file.getvalue())
        alt = " ".join(self.arguments[0].split())
        image = nodes.image(uri=f"/_generated/{name}", alt=alt, classes=["drawing"])
        image["candidates"] = {"*": image["uri"]}
        self.set_source_info(image)
        shown = []
        if "code" in self.options:
            shown.append(nodes.literal_block(code, code, language="python"))
        return [*shown, image]


def setup(app):
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True, "version": "1"}
