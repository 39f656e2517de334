"""``doublecheck run``: what it needs, what it runs, what it prints and how it exits."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentdouble.errors import MissingExtraError as DoublesMissingExtraError
from doublecheck.errors import MissingExtraError, TargetError
from doublecheck.target import plan_text as shown
from doublecheck.target.config_files import nearest_project
from doublecheck.target.plan import Plan, Said, plan
from doublecheck.target.target import Kind

if TYPE_CHECKING:
    from doublecheck.contracts.run_result import Run
    from doublecheck.reports.outputs import Outputs
    from doublecheck.reports.report import Report

PASSED, FAILED, WRONG_USAGE, NOT_CARRIED_OUT, INTERRUPTED = 0, 1, 2, 3, 130
_WORST_FIRST = (INTERRUPTED, FAILED, NOT_CARRIED_OUT, PASSED)


@dataclass(frozen=True)
class Order:
    """What is to be checked: a platform, by the options about it, and which of the checks.

    ``spelled`` returns how an option is written where it was given.
    """

    platform: Mapping[str, Any]
    select: str | None = None
    verbose: bool = False
    strict_should: bool = False
    spelled: Callable[[str], str] = "--{}".format

    @cached_property
    def said(self) -> Said:
        """Everything that is said about the platform."""
        given = {name: value for name, value in self.platform.items() if value is not None}
        return Said(given, project=nearest_project(), spelled=self.spelled)

    @cached_property
    def plan(self) -> Plan:
        """What the platform is to be; raises TargetError."""
        return plan(self.said)

    @property
    def kind(self) -> Kind:
        """What the platform is."""
        return self.plan.kind

    @property
    def url(self) -> str | None:
        """Where it is, if it runs already."""
        url: str | None = self.plan.value("url")
        return url

    def arguments(self) -> list[str]:
        """Return the order as pytest options."""
        given = [f"--platform-project={self.said.project or ''}"]
        for name, value in self.said.options.items():
            option = f"--platform-{name.replace('_', '-')}"
            given.append(option if value is True else f"{option}={value}")
        if self.strict_should:
            given.append("--platform-strict-should")
        if self.select is not None:
            given += ["-k", self.select]
        return given


def check(orders: Sequence[Order], outputs: Outputs) -> int:
    """Run the checks of each order, give out what they came to, and return the exit code.

    Raises TargetError, UnreachableError, CredentialsRefusedError, ReportError, and
    MissingExtraError for what is not installed, before the first check of any of them.
    """
    require_pytest()
    outputs.require_writable()
    for order in orders:
        if order.verbose:
            told = shown.lines(order.plan, order.said.environ)
            print(*told, sep="\n", file=sys.stderr)  # noqa: T201
        require_target(order)
    reports, codes = _carried_out(orders)
    if reports:
        outputs.give(reports)
    return next(code for code in _WORST_FIRST if code in codes)


def _carried_out(orders: Sequence[Order]) -> tuple[list[Report], set[int]]:
    """Return a report for each order that came to any check, and the exit codes."""
    from doublecheck.reports.report import Report
    from doublecheck.runner import runner as running

    reports, codes = [], set()
    for order in orders:
        result = running.run(order.arguments(), verbose=order.verbose)
        if not result.checks and not result.interrupted:
            codes.add(_nothing_ran(order, result.pytest_exit))
            continue
        reports.append(Report(order.plan.name, order.kind, order.url, result))
        codes.add(_exit_code(result, strict_should=order.strict_should))
        if result.interrupted:
            break
    return reports, codes


def require_pytest() -> None:
    """Raise MissingExtraError if there is nothing to run the checks with."""
    if importlib.util.find_spec("pytest") is None:
        raise MissingExtraError("pytest, which runs the checks,", install="pytest")


def require_target(order: Order) -> None:
    """Raise what stands in the way, before the first check stumbles over it."""
    if order.plan.in_process:
        _require_double()
    elif order.url is not None:
        from doublecheck.client import credentials_check, open_target
        from doublecheck.target import from_plan as targets

        with open_target.opened(order.said, order.plan) as target:
            credentials_check.require(target, targets.pair_variables(order.plan))


def _require_double() -> None:
    import agentdouble

    try:
        agentdouble.Emulator  # noqa: B018 (its import is what may fail)
    except DoublesMissingExtraError as error:
        what = "The double, which 'doublecheck run' without --url starts,"
        raise MissingExtraError(what, install=f"agentdouble[{error.extra}]") from None


def _nothing_ran(order: Order, pytest_exit: int) -> int:
    if order.select is not None and pytest_exit != 2:  # 2: interrupted
        raise nothing_matches(f"-k {order.select!r}", "-k INV")
    print("doublecheck: no check was carried out.", file=sys.stderr)  # noqa: T201
    return NOT_CARRIED_OUT


def nothing_matches(given: str, example: str) -> TargetError:
    """Return the error of a choice that chooses no check."""
    return TargetError(f"No check matches {given}. Try {example}, or without it.")


def _exit_code(run: Run, *, strict_should: bool) -> int:
    from doublecheck.contracts.verdicts import Verdict

    if run.interrupted:
        return INTERRUPTED
    if run.fails(strict_should=strict_should):
        return FAILED
    completed = run.pytest_exit in (0, 1)
    carried_out = Verdict.ERROR not in run.verdicts().values()
    return PASSED if completed and carried_out else NOT_CARRIED_OUT
