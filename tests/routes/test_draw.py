"""plan.draw() shows each part of the plan, no more than can be seen, and the same twice."""

import base64
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import cases
from fastpool import plan_adaptive_avg_pool, plan_avg_pool, plan_global_avg_pool
from fastpool._planning.windows import windows_of
from fastpool._plans import make_plan
from fastpool._showing.ruler import Ruler, bars

pytest.importorskip("matplotlib")

from matplotlib.collections import LineCollection, PolyCollection  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def words(figure):
    """Texts in the plane: numbers of windows and elements, names of axes."""
    return [text.get_text() for text in figure.axes[0].texts]


def outlines(figure):
    """Windows that are outlined in the plane, as (left, top, right, bottom) in cells."""
    return sorted(
        (
            round(p.get_x()),
            round(p.get_y()),
            *map(round, (p.get_x() + p.get_width(), p.get_y() + p.get_height())),
        )
        for p in figure.axes[0].patches
        if isinstance(p, Rectangle) and not p.get_fill()
    )


def cells(figure):
    return sum(
        len(c.get_paths()) for c in figure.axes[0].collections if isinstance(c, PolyCollection)
    )


def marks(figure):
    return sum(
        len(c.get_segments()) for c in figure.axes[0].collections if isinstance(c, LineCollection)
    )


def test_windows_that_do_not_overlap_are_outlined():
    figure = make_plan((5, 5), "float32", 2, strides=2, layout="HW").draw()
    boxes = [(2 * c, 2 * r, 2 * c + 2, 2 * r + 2) for r in range(3) for c in range(3)]
    assert outlines(figure) == sorted(boxes)
    assert cells(figure) == 36 and marks(figure) == 0
    assert legend(figure) == [
        "input",
        "past the padding",
        "in no window",
        "window, and its output's number",
        "window dropped (ceil_mode off)",
    ]
    assert sorted(words(figure)) == sorted(["H", "W", *"01234012" * 2])


def test_windows_that_overlap_are_marked_where_they_start():
    figure = make_plan((6, 6), "int8", 3, pads=1, layout="HW").draw()
    assert outlines(figure) == [(0, 0, 3, 3), (5, 5, 8, 8)]
    assert marks(figure) == 34
    assert cells(figure) == 64
    assert legend(figure) == [
        "input",
        "padding",
        "window, and its output's number",
        "start of a window",
    ]


def test_only_what_is_there_is_in_the_legend():
    plan = make_plan((4, 4), "int8", 2, strides=2, layout="HW")
    assert legend(plan.draw()) == ["input", "window, and its output's number"]
    attributes = {"strides": 3, "pads": 1, "ceil_mode": True, "layout": "W"}
    kept = legend(make_plan((4,), "int8", 2, ceil_rule="keep", **attributes).draw())
    assert "window added by ceil_mode" in kept and "no element in it" in kept
    clipped = legend(make_plan((4,), "int8", 2, **attributes).draw())
    assert 'window dropped (ceil_rule "clip")' in clipped
    assert "tap" in legend(make_plan((9,), "int8", 2, dilations=3, layout="W").draw())


def test_taps_of_dilated_windows():
    plan = make_plan((5,), "int8", 3, dilations=2, strides=9, layout="W")
    dots = [line for line in plan.draw().axes[0].lines if line.get_marker() == "o"]
    assert [sorted(line.get_xdata()) for line in dots] == [[0.5, 2.5, 4.5]] * 2
    crosses = [line for line in plan.draw().axes[0].lines if line.get_marker() == "x"]
    assert sorted(crosses[0].get_xdata()) == [1.5, 3.5]


@pytest.mark.parametrize("width", (None, 4))
@pytest.mark.parametrize(
    "shape, kernel, attributes",
    [
        ((224, 224), 3, {"strides": 2, "auto_pad": "SAME_UPPER"}),
        ((4000, 7), (1000, 2), {"pads": (500, 0, 3, 0)}),
        ((100000,), 7, {"strides": 3, "ceil_mode": True}),
        ((64, 64), 33, {"pads": 16}),
        ((50, 50), 3, {"pads": 10**6}),
        ((3, 5), 10**8, {"pads": 10**9, "dilations": 9, "strides": 10**7}),
    ],
)
def test_large_geometries_are_drawn_in_part(shape, kernel, attributes, width):
    layout = "W" if len(shape) == 1 else "HW"
    figure = make_plan(shape, "int8", kernel, layout=layout, **attributes).draw(width=width)
    assert cells(figure) <= 34**2
    assert len(figure.axes[0].get_children()) < 200
    assert {"⋯"} & set(words(figure)) or {"⋮"} & set(words(figure))
    assert width is None or figure.get_figwidth() == width
    numbers = {int(word) for word in words(figure) if word.isdecimal()}
    assert {0, shape[-1] - 1} <= numbers or shape[-1] > 10**4


def test_every_drawn_window_is_where_it_is():
    plan = make_plan((40,), "int8", 5, strides=3, pads=2, layout="W")
    (windows,) = windows_of(plan)
    ruler = Ruler([windows], 30, 40)
    drawn = ruler.windows(windows)
    assert drawn[:2] == [0, 1] and drawn[-1] == 13 and len(drawn) < 14
    for output in drawn:
        start, stop = windows.first(output), windows.last(output) + 1
        if all(map(ruler.shows, range(start, stop))):
            assert ruler.at(stop) - ruler.at(start) == 5
    places = [ruler.at(place) for place in range(-2, 43)]
    assert places[0] == 0 and all(np.diff(places) > 0)


def test_bars_do_not_touch_each_other():
    for kernel, stride, size in ((2, 2, 8), (3, 1, 12), (5, 2, 20), (13, 1, 20), (1, 1, 20)):
        plan = make_plan((size,), "int8", kernel, strides=stride, layout="W")
        (windows,) = windows_of(plan)
        ruler = Ruler([windows], 30, 44)
        side = bars(windows, ruler)
        assert side.lanes <= 8 and side.placed[0][0] == 0
        ends = {}
        for output, lane in side.placed:
            assert ends.get(lane, 0) <= ruler.at(windows.first(output))
            ends[lane] = ruler.at(windows.last(output) + 1)


def test_svg_is_well_formed_and_the_same_every_time(tmp_path):
    written = []
    for name in ("a.svg", "b.svg"):
        plan = make_plan((1, 3, 9, 9), "float32", 3, strides=2, pads=1, ceil_mode=True)
        plan.draw().savefig(tmp_path / name)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert b"date" not in written[0]
    root = ElementTree.fromstring(written[0])
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    with open(tmp_path / "c.svg", "wb") as file:
        plan.draw().savefig(file, format="svg")
    assert (tmp_path / "c.svg").read_bytes() == written[0]
    plan.draw().savefig(tmp_path / "d.png", dpi=50)
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")


def test_settings_of_the_caller_change_nothing(tmp_path):
    import matplotlib

    plan = make_plan((9,), "float32", 3, layout="W")
    plan.draw().savefig(tmp_path / "a.svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "text.usetex": False}):
        plan.draw().savefig(tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_titles():
    plan = make_plan((1, 3, 9, 9), "float32", 3, strides=2, pads=1, ceil_mode=True)
    title = [text.get_text() for text in plan.draw(width=8).texts]
    assert title[0] == "float32 NCHW (1,\xa03,\xa09,\xa09) → (1,\xa03,\xa05,\xa05)"
    assert "pads (1,\xa01,\xa01,\xa01), ceil_mode\xa0(clip)" in " ".join(title[1:])
    assert plan.draw(title="").texts == []
    assert [text.get_text() for text in plan.draw(title="Mine").texts] == ["Mine"]


def test_width():
    plan = make_plan((9,), "float32", 3, layout="W")
    assert plan.draw(width=2).get_figwidth() == 2
    for width in (0, -1, 1000, float("nan")):
        with pytest.raises(ValueError, match="^width: expected 2 to 100 inches, got"):
            plan.draw(width=width)
    with pytest.raises(TypeError):
        plan.draw(width="4")


def test_axes_of_more_than_two():
    plan = make_plan((1, 3, 5, 6, 7), "int8", 2)
    with pytest.raises(ValueError, match="^axes: 3 spatial axes .*; name one or two of D, H, W"):
        plan.draw()
    assert {"D", "W"} <= set(words(plan.draw(axes="DW")))
    assert "H" in words(plan.draw(axes="H"))
    many = make_plan((1, 3, 5, 6, 7, 8), "int8", 2)
    assert {"D1", "D4"} <= set(words(many.draw(axes=("D4", "D1"))))
    for axes in ("X", "", "DHW", "HH", ("H", 1)):
        with pytest.raises(ValueError, match="^axes: expected one or two of D, H, W, got"):
            plan.draw(axes=axes)
    with pytest.raises(TypeError, match="^axes: expected names"):
        plan.draw(axes=3)


def test_tiles_and_empty_outputs_are_drawn():
    tile = make_plan((9, 9), "int8", 3, strides=2, pads=1, layout="HW").tile(np.s_[1:3]).plan
    assert "of a tile" in tile.draw(width=9).texts[1].get_text()
    empty = make_plan((2, 0, 5), "int8", 2, strides=2, auto_pad="SAME_UPPER", layout="NHW")
    assert empty.output_shape == (2, 0, 3)
    assert outlines(empty.draw()) == []


def test_in_a_notebook():
    shown = make_plan((1, 2, 6, 6), "int8", 3)._repr_html_()
    ElementTree.fromstring(shown.replace("<br>", "<br/>").replace('"><table>', '"/><table>'))
    data = re.search(r'<img alt="[^"]+" src="data:image/svg\+xml;base64,([^"]+)">', shown)[1]
    assert ElementTree.fromstring(base64.b64decode(data)).tag.endswith("svg")


def test_without_matplotlib():
    code = """
import sys
sys.modules["matplotlib"] = None
import fastpool
plan = fastpool.plan_max_pool((4, 4), "int8", 2, layout="HW")
print(plan._repr_html_().startswith("<div>"), "<img" in plan._repr_html_())
try:
    plan.draw()
except ImportError as error:
    print(error)
"""
    process = cases.run_python(code)
    assert process.stdout.splitlines() == [
        "True False",
        'drawing needs matplotlib: pip install "fastpool[plot]"',
    ]


def test_importing_fastpool_does_not_import_matplotlib():
    code = "import sys, fastpool; print(*({'matplotlib', 'fastpool._showing'} & {*sys.modules}))"
    assert cases.run_python(code).stdout.split() == []


def test_divisors_of_a_row():
    attributes = {"strides": 2, "pads": 1, "ceil_mode": True, "layout": "W"}

    def drawn(**more):
        figure = plan_avg_pool((4,), "float32", 3, **attributes, **more).draw()
        return [word for word in words(figure) if word.count("÷")], legend(figure)

    texts, entries = drawn()
    assert texts == ["0 ÷2", "1 ÷3", "2 ÷1"]
    assert {"padding (does not count)", "past the padding (does not count)"} <= {*entries}
    assert "what the sum is divided by" in entries
    texts, entries = drawn(count_include_pad=True)
    assert texts == ["0 ÷3", "1 ÷3", "2 ÷2"]
    assert {"padding (counts)", "past the padding (does not count)"} <= {*entries}
    texts, entries = drawn(count_include_pad=True, beyond="count")
    assert texts == ["0 ÷3", "1 ÷3", "2 ÷3"] and "past the padding (counts)" in entries
    texts, entries = drawn(divisor=-7)
    assert texts == ["0 ÷-7", "1 ÷-7", "2 ÷-7"] and {"padding", "past the padding"} <= {*entries}
    attributes |= {"strides": 3, "ceil_rule": "keep"}
    kept = words(plan_avg_pool((4,), "int8", 2, **attributes).draw())
    assert [word for word in kept if len(word) > 1] == ["0 ÷1", "1 ÷2", "2∅"]
    maxima = make_plan((4,), "int8", 2, pads=1, layout="W").draw()
    assert "÷" not in "".join(words(maxima)) and "padding" in legend(maxima)


def test_divisors_of_a_plane():
    figure = plan_avg_pool((6, 5), "int8", (3, 2), pads=1, layout="HW").draw()
    texts = words(figure)
    assert texts.count("÷2") == 2  # the first and the last window: 2 rows times 1 column
    assert {"0 ÷1", "0 ÷2", "1 ÷2", "1 ÷3"} <= {*texts}
    assert "what the sum is divided by, along each axis and in all" in legend(figure)
    apart = plan_avg_pool((4, 6), "int8", 2, strides=2, layout="HW").draw()
    assert words(apart).count("÷4") == 6
    fixed = plan_avg_pool((4, 6), "int8", 2, strides=2, layout="HW", divisor=5).draw()
    assert words(fixed).count("÷5") == 6 and "0" in words(fixed)
    assert "what the sum is divided by" in legend(fixed)
    many = plan_avg_pool((18, 18), "int8", 2, strides=2, layout="HW").draw()
    assert "÷4" not in words(many) and "0 ÷2" in words(many)


def test_divisors_of_some_axes():
    plan = plan_avg_pool((4, 5, 6), "int8", 2, pads=1, layout="DHW")
    figure = plan.draw(axes="HW")
    assert {"0 ÷1", "1 ÷2"} <= {*words(figure)}
    assert not any(word.startswith("÷") for word in words(figure))
    assert "taps that count along an axis" in legend(figure)
    fixed = plan_avg_pool((4, 5, 6), "float32", 2, divisor=3, layout="DHW")
    assert "÷3" in words(fixed.draw(axes="HW"))


def test_windows_of_an_output_size():
    figure = plan_adaptive_avg_pool((7,), "float32", 3, layout="W").draw()
    assert [word for word in words(figure) if "÷" in word] == ["0 ÷3", "1 ÷3", "2 ÷3"]
    assert outlines(figure) == [(0, 0, 3, 1), (4, 0, 7, 1)] and marks(figure) == 1
    assert legend(figure)[0] == "input" and "in no window" not in legend(figure)
    plane = plan_adaptive_avg_pool((1, 1, 7, 6), "float32", (3, 2)).draw()
    assert outlines(plane) == [(0, 0, 3, 3), (3, 4, 6, 7)]
    assert words(plane).count("÷9") == 2 and {"1 ÷3", "0 ÷3"} <= {*words(plane)}
    assert plane.texts[1].get_text() == "output_size (3,\xa02)"
    whole = plan_global_avg_pool((1, 1, 4, 6), "float32").draw()
    assert "÷24" in words(whole) and outlines(whole) == [(0, 0, 6, 4)]
    part = plan_adaptive_avg_pool((7, 7), "float32", (5, 7), layout="HW").tile(np.s_[1:3, 2:4]).plan
    assert part.draw(width=9).texts[1].get_text() == "3 x 1 elements at most, of a tile"


@pytest.mark.parametrize(
    "size, outputs", [(60, 7), (7, 60), (3, 2**55), (2**50, 3 * 2**40 + 1), (1000, 999), (5, 0)]
)
def test_adaptive_windows_of_any_number(size, outputs):
    plan = plan_adaptive_avg_pool((size, 6), "int8", (outputs, 4), layout="HW")
    figure = plan.draw()
    assert cells(figure) <= 34**2
    assert len(figure.axes[0].get_children()) < 250
    assert marks(figure) <= 34**2
    assert (f"{outputs - 1} ÷" in "".join(words(figure))) == (outputs > 0)


def test_labels_fit_into_their_bars():
    narrow = plan_adaptive_avg_pool((3,), "int8", 7000, layout="W").draw()
    sizes = {text.get_text(): text.get_fontsize() for text in narrow.axes[0].texts}
    assert sizes["6999 ÷1"] < sizes["0 ÷1"] < 7.1
