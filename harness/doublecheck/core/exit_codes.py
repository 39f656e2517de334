"""ExitCode: the exit codes of a run of the checks, for shells and for CI."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of ``doublecheck run``.

    A pytest run with the checks uses the same codes, except for wrong usage (pytest's 4) and an
    interrupted run (pytest's 2). ``NOTHING_CHECKED`` is pytest's code for no tests.
    """

    PASSED = 0
    FAILED = 1
    WRONG_USAGE = 2
    COULD_NOT_ASK = 3
    NOTHING_CHECKED = 5
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The meaning of the code, in a few words."""
        return _MEANINGS[self]

    @classmethod
    def worst(cls, codes: set[ExitCode]) -> ExitCode:
        """Return the exit code of several runs."""
        return next(code for code in _WORST_FIRST if code in codes)


_MEANINGS = {
    ExitCode.PASSED: "something passed, and nothing failed",
    ExitCode.FAILED: "a check failed",
    ExitCode.WRONG_USAGE: "wrong usage",
    ExitCode.COULD_NOT_ASK: "the platform, or a part of it, did not answer",
    ExitCode.NOTHING_CHECKED: "nothing was checked",
    ExitCode.INTERRUPTED: "interrupted",
}
_WORST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.FAILED,
    ExitCode.COULD_NOT_ASK,
    ExitCode.NOTHING_CHECKED,
    ExitCode.PASSED,
)


def listed() -> str:
    """Return the codes with their meanings, a line each, for a help text."""
    return "\n".join(f"  {code.value:<3}  {code.meaning}" for code in ExitCode)
