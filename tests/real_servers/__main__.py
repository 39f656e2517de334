"""``python -m tests.real_servers``: use real servers through services, and print a table."""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentdouble import Emulator
from tests.real_servers import conformance
from tests.real_servers.running import Result, over_http, over_stdio
from tests.real_servers.servers import SERVERS

CACHE = Path(__file__).parents[2] / ".nox" / "real-servers"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen servers; return 1 if anything differs."""
    options = _options(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=options.cache / "double.log", filemode="w")
    warnings.simplefilter("ignore")
    results = []
    _print("| server | what was run | result |\n|---|---|---|")
    with Emulator(pool_size=0, visible_paths=(str(options.cache.absolute()),)) as double:
        for result in _results(double, options.cache.absolute(), options.only):
            results.append(result)
            _print(f"| {result.server} | {result.ran} | {'differs' if result.problem else 'ok'} |")
    problems = [result for result in results if result.problem]
    for result in problems:
        _print(f"\n{result.server}: {result.problem}")
    return int(bool(problems) or not results)


def _results(double: Emulator, cache: Path, only: list[str]) -> Iterator[Result]:
    for server in SERVERS:
        if not only or server.name in only:
            server.environment.make(cache)
            yield from over_stdio(double, server, cache)
            yield from over_http(double, server, cache)
    yield from conformance.results(double, cache, only)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.real_servers", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", default=[])
    parser.add_argument("--cache", type=Path, default=CACHE, help="where environments are made")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
