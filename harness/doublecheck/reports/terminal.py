"""The matrix: clause by clause, with its verdict and, where it did not pass, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from doublecheck.contracts.clauses import clauses
from doublecheck.runs import Check, Run
from doublecheck.verdicts import Verdict

_STYLES = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "bold red",
    Verdict.ERROR: "bold magenta",
}


def show(run: Run, target: str, console: Console) -> None:
    """Print the matrix and a line that sums it up."""
    verdicts = run.verdicts()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("clause", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("")
    for clause, checks in run.by_clause().items():
        verdict = verdicts[clause]
        shown = Text(verdict.value, _STYLES.get(verdict, "yellow"))
        table.add_row(clause.id, clause.level, shown, _explained(clause.text, checks))
    console.print()
    console.print(table)
    console.print()
    console.print(Text(summary(verdicts.values(), target)))


def summary(verdicts: Iterable[Verdict], target: str) -> str:
    """Return one line: how many clauses came to what, and how many have no check yet."""
    counts = Counter(verdicts)
    told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    unchecked = len(clauses()) - sum(counts.values())
    return f"{target}: {told}. {unchecked} of {len(clauses())} clauses were not checked."


def _explained(text: str, checks: Sequence[Check]) -> Text:
    explained = Text(text)
    for reason in dict.fromkeys(check.reason for check in checks if check.reason):
        explained.append(f"\n{reason.splitlines()[0]}", "dim")
    return explained
