from __future__ import annotations

import io

from rich.console import Console

from doublecheck.reports import terminal
from doublecheck.runs import Check, Run
from doublecheck.verdicts import Verdict

RUN = Run(
    (
        Check("b", "CTL-04", Verdict.NOT_RUN, "not run: takes long"),
        Check("a", "INV-04", Verdict.FAILED, "assert 1 == 2\nmore"),
        Check("c", "INV-04", Verdict.PASSED),
    ),
    pytest_exit=1,
)


def show(*, colours: bool) -> str:
    file = io.StringIO()
    terminal.show(RUN, "a double", Console(file=file, width=100, force_terminal=colours))
    return file.getvalue()


def test_the_matrix_is_in_the_specifications_order() -> None:
    """Each clause once, with the worst verdict and the first line of each reason."""
    assert [
        "clause  level   verdict",
        "INV-04  must    failed   A returned string is wrapped as a JSON response.",
        "                         assert 1 == 2",
        "CTL-04  should  not run  An unknown tool id is refused.",
        "                         not run: takes long",
        "",
        "a double: 1 failed, 1 not run. 83 of 85 clauses were not checked.",
    ] == [line.rstrip() for line in show(colours=False).strip().splitlines()]


def test_there_are_colours_on_a_terminal_only() -> None:
    """A pipe gets plain text."""
    assert (True, False) == ("\x1b[" in show(colours=True), "\x1b[" in show(colours=False))
