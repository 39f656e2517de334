"""Draw the pictures of the front page anew: ``python -m notebooks.pictures``."""

from __future__ import annotations

from pathlib import Path

from notebooks.pictures import console, transcript
from notebooks.pictures.drawing import draw

DEMO = Path(__file__).parent / "demo.svg"


def main() -> None:
    """Run the demo and draw what it prints, and the web console of a double in use."""
    printed = transcript.excerpt(transcript.run(coloured=True))
    DEMO.write_text(draw(printed, transcript.COLUMNS, "$ agentdouble demo"), "utf-8")
    console.draw(DEMO.parent)


if __name__ == "__main__":
    main()
