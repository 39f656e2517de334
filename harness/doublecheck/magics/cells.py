"""Run a cell on a platform with live output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from doublecheck.errors import RefusedError
from doublecheck.magics.cell_output import (
    OutputDisplay,
    bad_exit_of,
    fail,
    failure_of,
)
from doublecheck.magics.options import BASH
from doublecheck.magics.sessions import refuse_name, user_session_id
from doublecheck.values.sandbox import BashResult, CodeResult

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform
    from doublecheck.magics.options import CellOptions
    from doublecheck.values.sandbox import OnOutput

Result: TypeAlias = "CodeResult | BashResult"
Store: TypeAlias = Callable[[Any], None]


@dataclass(frozen=True)
class Cell:
    """The code of a cell and the options on its first line."""

    code: str
    options: CellOptions

    def run(self, platform: Platform, on_output: OnOutput | None = None) -> Result:
        """Run it and return its result."""
        who: dict[str, Any] = {"user_id": self.options.user, "session_id": self.options.session}
        how: dict[str, Any] = {"timeout_s": self.options.timeout_s, "on_output": on_output}
        if self.options.language != BASH:
            return platform.run_code(self.code, self.options.language, **who, **how)
        return platform.exec_bash(self.code, **who, **how)


def show(cell: Cell, platform: Platform, store: Store) -> None:
    """Run a cell, show its output and store its result; raise FailedCellError if it failed."""
    options = cell.options
    try:
        result = cell.run(platform, OutputDisplay(user_session_id(options.user, options.session)))
    except RefusedError as error:
        refuse_name(options.user, options.session, error)
    store(result)
    if isinstance(result, CodeResult):
        failure = failure_of(result)
    else:
        failure = bad_exit_of(result, options.timeout_s)
    fail(failure, raises=options.raises)
