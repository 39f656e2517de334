"""The picture of the front page shows what a real run prints."""

from __future__ import annotations

import re

import pytest

from notebooks.pictures import transcript
from notebooks.pictures.__main__ import DEMO
from notebooks.pictures.drawing import text_of
from tests.readme.pages import FRONT, ROOT, read

pytestmark = pytest.mark.once

AGAIN = "`python -m notebooks.pictures` draws what a run prints today."


@pytest.mark.slow
def test_it_shows_what_a_run_prints() -> None:
    """Ports, times and the size of the plot aside."""
    text = transcript.normalize(text_of(DEMO.read_text("utf-8")))

    assert text == transcript.normalize(transcript.excerpt(transcript.run())), AGAIN


def test_it_is_on_the_page_and_needs_nothing_from_elsewhere() -> None:
    """No font, no style and no image is asked of another address."""
    svg = DEMO.read_text("utf-8")

    assert f"]({DEMO.relative_to(ROOT)})" in read(FRONT)
    assert set() == set(re.findall(r"url\((?!#)|@import|@font-face|href=", svg))
