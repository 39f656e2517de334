"""Write the figures of several runs into ``emulator/docs/figures.md``.

    python -m tests.benchmarks.page FILE... [--into PAGE]

Each FILE is what ``--json`` of a benchmark has written. A figure of several runs becomes their
median, with the lowest and the highest. The page keeps its text outside of the two marks.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from tests.benchmarks.table import HEAD, Row, line

PAGE = Path(__file__).parents[2] / "emulator" / "docs" / "figures.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end -->\n"
VARYING = ("date", "load", "sections")  # between runs of one machine


def merged(runs: list[dict[str, Any]]) -> str:
    """Return the tables of all runs; raise ValueError if they differ in machine or versions."""
    machines = [{key: run[key] for key in run if key not in VARYING} for run in runs]
    if any(machine != machines[0] for machine in machines):
        raise ValueError(f"The runs are of different machines or versions: {machines}")
    dates, loads = (sorted(run[key] for run in runs) for key in ("date", "load"))
    days = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    versions = ", ".join(f"{key} {value}" for key, value in machines[0].items())
    text = _filled(f"{days}; {versions}; load before a run at most {loads[-1]}.")
    sections: dict[str, dict[str, Any]] = {}
    for section in (section for run in runs for section in run["sections"]):
        rows = sections.setdefault(section["title"], {"about": section["about"], "rows": {}})[
            "rows"
        ]
        for row in (Row(**fields) for fields in section["rows"]):
            rows.setdefault((row.name, row.unit), []).append(row)
    for title, section in sections.items():
        counts = [len(rows) for rows in section["rows"].values()]
        times = (
            "one run" if max(counts) == 1 else f"median of {max(counts)} runs (lowest to highest)"
        )
        text += f"\n## {title}\n\n{_filled(section['about'])}\n{HEAD.replace('measured', times)}\n"
        for rows in section["rows"].values():
            text += line(rows[-1], [row.value for row in rows]) + "\n"
    return text


def _filled(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def main() -> None:
    """Replace what is between the marks of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--into", type=Path, default=PAGE)
    options = parser.parse_args()
    runs = [json.loads(file.read_text("utf-8")) for file in options.files]
    page = options.into.read_text("utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    options.into.write_text(f"{before}{BEGIN}\n{merged(runs)}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
