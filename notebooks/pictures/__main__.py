"""Draw the pictures of the pages and notebooks anew: ``python -m notebooks.pictures``."""

from __future__ import annotations

from pathlib import Path

from notebooks.pictures import console, lab, transcript
from notebooks.pictures.drawing import draw
from tests.console.driving import launched

FOLDER = Path(__file__).parent


def main() -> None:
    """Draw what the demo prints, the web console of a double in use, and JupyterLab."""
    printed = transcript.excerpt(transcript.run(coloured=True))
    picture = draw(printed, transcript.COLUMNS, "$ agentdouble demo")
    transcript.PICTURE.write_text(picture, "utf-8")
    with launched() as browser:
        console.draw(browser, FOLDER)
        lab.draw(browser, FOLDER)


if __name__ == "__main__":
    main()
