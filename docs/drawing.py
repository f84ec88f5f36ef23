"""A directive for pictures: its body is Python code that makes a matplotlib figure.

    ```{drawing} What the picture shows, as alternative text
    plan = fastpool.plan_max_pool((7,), "float32", 3, strides=2, layout="W")
    plan.draw()
    ```

The last line is an expression: the figure, or text that the page shows unchanged. The code can use
`fastpool`, `np`, `plt` and `pictures`. With ``:code:`` the page shows the code too.
"""

import ast
import hashlib
import io
import re
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
from fastpool._running import threads  # noqa: E402

# Equal builds give equal files.
STYLE = {"svg.hashsalt": "fastpool", "font.size": 10, "savefig.transparent": True}


def result_of(code):
    """Run the code and return the value of its last line."""
    import pictures

    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value)
    names = {"fastpool": fastpool, "np": np, "plt": plt, "pictures": pictures}
    exec(compile(tree, "<drawing>", "exec"), names)
    return eval(compile(last, "<drawing>", "eval"), names)


class Drawing(SphinxDirective):
    has_content = True
    required_arguments = 1  # the alternative text
    final_argument_whitespace = True
    option_spec = {"code": directives.flag}

    def run(self):
        code = textwrap.dedent("\n".join(self.content))
        shown = []
        if "code" in self.options:
            shown.append(nodes.literal_block(code, code, language="python"))
        with matplotlib.rc_context(STYLE):
            result = result_of(code)
            if isinstance(result, str):
                return [*shown, nodes.literal_block(result, result, language="text")]
            file = io.BytesIO()
            result.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
            plt.close(result)
        frame = nodes.container("", self.image(file.getvalue()), classes=["drawing-frame"])
        return [*shown, frame]

    def image(self, svg):
        name = f"{hashlib.sha256(svg).hexdigest()[:16]}.svg"
        folder = Path(self.env.srcdir) / "_generated"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(svg)
        # A little larger than printed: the text of the drawings is smaller than that of the page.
        width = 1.2 * float(re.search(rb'width="([\d.]+)pt"', svg).group(1)) / 72
        alt = " ".join(self.arguments[0].split())
        image = nodes.image(uri=f"/_generated/{name}", alt=alt, width=f"{width:.2f}in")
        # dark-light: the theme leaves its colours alone, and fastpool.css turns them.
        image["classes"] = ["drawing", "dark-light"] + ["wide"] * (width > 5.5)
        image["candidates"] = {"*": image["uri"]}
        self.set_source_info(image)
        return image


def without_torch(gallery_conf, name):
    """Forget the limit of threads that fastpool.torch takes from torch: here torch is a mock."""
    threads.limits.clear()


def setup(app):
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True, "version": "1"}
