"""Measure the double, beside other servers where there are any, and print tables.

    python -m tests.benchmarks [--json FILE] [--cache FOLDER] [SECTION...]

CPU is what all processes of the machine use, unless a section says otherwise, so nothing else
should run. Times are medians. ``tests.benchmarks.page`` makes a page of the files of several runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks import calls, gateway, peers, sessions, table, tasks
from tests.benchmarks.table import Section

Sections = Callable[[argparse.Namespace], Iterator[Section]]
SECTIONS: dict[str, Sections] = {
    "calls": lambda _: calls.sections(),
    "sessions": lambda options: sessions.sections(options.sessions),
    "copies": lambda options: sessions.copied(options.copies),
    "notebooks": lambda options: gateway.sections(options.cache.resolve()),
    "a2a": lambda _: tasks.sections(),
    "memory": lambda options: peers.sections("memory", options.cache.resolve()),
    "file": lambda options: peers.sections("file", options.cache.resolve()),
    "postgresql": lambda options: peers.sections("postgresql", options.cache.resolve()),
}


def main() -> None:
    """Print the tables as Markdown, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sessions", type=int, default=450)
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--cache", type=Path, default=Path("build/benchmarks"), help="of peers")
    options = parser.parse_args()
    names = options.names or list(SECTIONS)
    found = (section for name in names for section in SECTIONS[name](options))
    table.write(found, options.json)


if __name__ == "__main__":
    main()
