"""How high the frame of HTML is."""

from __future__ import annotations

import pytest

from doublecheck.notebook.display.frame_heights import height_px

CELL_STYLES = "<style>\n" + "#T_row0_col0 { color: red; }\n" * 200 + "</style>"


def styled(rows: int) -> str:
    """Return a table as a Styler of pandas writes it: each cell in a line of its own."""
    cells = "      <td class='data'>1</td>\n" * 5
    row = f"    <tr>\n{cells}    </tr>\n"
    return f"{CELL_STYLES}<table>{row * rows}</table>"


@pytest.mark.parametrize(
    ("html", "measured_px"),
    [
        (styled(6), 160),  # in Chromium, as all of these
        (styled(16), 396),
        ("<div onclick=a()>" + "Lorem ipsum dolor sit amet, consectetur. " * 60 + "</div>", 447),
        ("<svg width='300' height='200'></svg>", 216),
        ("<svg width='206pt' height='188pt'></svg>", 267),
        ("<svg viewBox='0 0 300 100'></svg>", 305),
        ("<canvas style='width: 100%; height: 350px'></canvas>", 366),
        ("<pre onclick=a()>" + "a = 1\n" * 15 + "</pre>", 330),
    ],
)
def test_a_frame_is_about_as_high_as_what_it_shows(html: str, measured_px: int) -> None:
    """All is seen, and below it there is not half a page of nothing."""
    assert measured_px - 10 <= height_px(html) <= measured_px + 60


@pytest.mark.parametrize("html", [styled(60), "<p>a</p>" * 1000, "<svg height=5000></svg>"])
def test_what_is_long_is_seen_in_part(html: str) -> None:
    """A frame scrolls."""
    assert 600 == height_px(html)


def test_a_script_has_room_to_draw() -> None:
    """Unless what it draws with does not arrive, or the HTML says how high that is."""
    script = "<div id=it></div><script>draw(it)</script>"

    assert 460 == height_px(script)
    assert 60 == height_px(script, whole=False)
    assert 324 == height_px(f"<div style='height:300px'></div>{script}")
