"""``python -m tests.mutants``: run the mutants, print the survivors and the kill rates."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.mutants import campaign


def main() -> int:
    """Run the chosen mutants; exit with 1 if one survives."""
    options = _options()
    words = options.only or [""]
    chosen = [
        number
        for number, mutant in enumerate(campaign.mutants())
        if any(word in str(mutant) for word in words)
        and mutant.table in (options.tables or [mutant.table])
    ]
    began, outcomes = time.monotonic(), {}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, spawn) as pool:
        running = {pool.submit(campaign.outcome, number): number for number in chosen}
        for done in as_completed(running):
            outcomes[running[done]] = done.result()
            if sys.stderr.isatty():
                print(f"\r{len(outcomes)} of {len(chosen)}", end="", file=sys.stderr)
    _print(outcomes)
    print(f"{time.monotonic() - began:.0f} s")
    return int(set(outcomes.values()) != {campaign.CAUGHT})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="parts of names, such as API-05")
    parser.add_argument("-t", "--tables", nargs="+", help="modules of tests/mutants")
    parser.add_argument("-n", "--processes", type=int, default=os.cpu_count())
    return parser.parse_args()


def _print(outcomes: dict[int, str]) -> None:
    mutants = campaign.mutants()
    for number, outcome in sorted(outcomes.items()):
        if outcome != campaign.CAUGHT:
            print(f"{outcome}: {mutants[number]}")
    caught = [mutants[it] for it, outcome in outcomes.items() if outcome == campaign.CAUGHT]
    every = [mutants[number] for number in outcomes]
    for name in ("table", "clause"):
        most, some = (Counter(getattr(it, name) for it in them) for them in (every, caught))
        for key in sorted(most):
            print(f"{key:12} {some[key]:3} of {most[key]:3}")
    total = len(caught)
    print(f"{'all':12} {total:3} of {len(outcomes):3}, {total / max(len(outcomes), 1):.1%}")


if __name__ == "__main__":
    sys.exit(main())
