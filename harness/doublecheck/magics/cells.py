"""Running a cell: on one platform, shown here as it runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from doublecheck.errors import InterruptedRunError, RefusedError
from doublecheck.magics.failing import bad_exit_of, fail, failure_of
from doublecheck.magics.options import BASH
from doublecheck.magics.sessions import refuse_name, user_session_id
from doublecheck.magics.showing import Showing

if TYPE_CHECKING:
    from collections.abc import Callable

    from doublecheck.magics.options import CellOptions
    from doublecheck.platform import Platform
    from doublecheck.results import BashResult, CodeResult


def run(
    platform: Platform,
    code: str,
    options: CellOptions,
    store: Callable[[CodeResult | BashResult], None],
) -> None:
    """Run a cell, show what it says, store its result; raise FailedCellError if it failed."""
    try:
        if options.language == BASH:
            _run_bash(platform, code, options, store)
        else:
            _run_code(platform, code, options, store)
    except RefusedError as error:
        refuse_name(options.user, options.session, error)


def _run_code(
    platform: Platform,
    code: str,
    options: CellOptions,
    store: Callable[[CodeResult | BashResult], None],
) -> None:
    result = platform.run_code(
        code,
        options.language,
        user_id=options.user,
        session_id=options.session,
        timeout_s=options.timeout_s,
        on_output=Showing(user_session_id(options.user, options.session)),
    )
    store(result)
    fail(failure_of(result), raises=options.raises)


def _run_bash(
    platform: Platform,
    command: str,
    options: CellOptions,
    store: Callable[[CodeResult | BashResult], None],
) -> None:
    try:
        result = platform.exec_bash(
            command,
            user_id=options.user,
            session_id=options.session,
            timeout_s=options.timeout_s,
        )
    except InterruptedRunError:
        raise
    except KeyboardInterrupt:
        raise InterruptedRunError(options.session, double=platform.target.admin) from None
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    store(result)
    fail(bad_exit_of(result, options.timeout_s), raises=options.raises)
