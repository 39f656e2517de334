"""``python -m tests.real_clients``: run real clients against a double, and print the results."""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.real_clients.clients import CLIENTS
from tests.real_clients.doubles import served
from tests.real_clients.running import Result, run

CACHE = Path(__file__).parents[2] / ".nox" / "real-clients"
HEAD = "| client | version | what was run | result |\n|---|---|---|---|"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen clients; exit with 1 if one failed."""
    options = _options(arguments)
    chosen = [client for client in CLIENTS if not options.only or client.name in options.only]
    options.cache.mkdir(parents=True, exist_ok=True)
    log = options.cache / "double.log"
    logging.basicConfig(filename=log, filemode="w")
    warnings.simplefilter("ignore")
    results = []
    with served() as facts:
        for client in chosen:
            results.append(run(client, facts, options.cache))
            if sys.stderr.isatty():
                print(f"{client.name}: {_result(results[-1])}", file=sys.stderr)
    print(json.dumps([*map(dataclasses.asdict, results)]) if options.json else table(results))
    failed = any(result.problems for result in results)
    if failed:
        print(f"The double's log: {log}", file=sys.stderr)
    return int(failed)


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, followed by the problems."""
    rows = [
        f"| {row.client} | {row.version} | {steps(row.ran)} | {_result(row)} |" for row in results
    ]
    problems = [f"{result.client}: {problem}" for result in results for problem in result.problems]
    return "\n".join([HEAD, *rows, *(f"\n{problem}" for problem in problems)])


def steps(ran: Mapping[str, list[str]]) -> str:
    """Return the steps that ran, grouping the parts with the same steps."""
    alike: dict[str, list[str]] = {}
    for part, names in ran.items():
        alike.setdefault(", ".join(names), []).append(part)
    return "; ".join(f"{' and '.join(parts)}: {names}" for names, parts in alike.items())


def _result(result: Result) -> str:
    return "failed" if result.problems else f"passed, {result.seconds:.1f} s"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.real_clients", description=__doc__)
    names = [client.name for client in CLIENTS]
    parser.add_argument("--only", action="append", choices=names, help="a client; repeatable")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where environments are kept")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
