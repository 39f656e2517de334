"""The messages of the magics: lines of information, and refusals that say what to do."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from IPython.core.error import UsageError

from agentdouble import tracebacks
from doublecheck.errors import DoubleCheckError, FailedCellError


def write_line(message: str) -> None:
    """Write a line to the output of the cell."""
    sys.stdout.write(f"{message}\n")


@contextmanager
def short_errors() -> Iterator[None]:
    """Make an error show only its message: the magic itself is the line that caused it.

    After ``%xmode Verbose`` every frame is shown, as usual.
    """
    try:
        yield
    except FailedCellError:  # it shows the sandbox's traceback
        raise
    except (DoubleCheckError, KeyboardInterrupt) as error:
        tracebacks.leave_message(error)
        raise


def refuse(message: str) -> NoReturn:
    """Fail the cell with an error that IPython shows as one line."""
    raise UsageError(message)


def refuse_unknown(what: str, word: str, words: Iterable[str]) -> NoReturn:
    """Fail the cell because of an unknown word, and suggest the nearest."""
    known = list(words)
    near = difflib.get_close_matches(word.lower(), known, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    refuse(f"There is no {what} {word!r}. {hint}There are: {', '.join(known) or 'none'}.")
