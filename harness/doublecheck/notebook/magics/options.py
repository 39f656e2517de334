"""The options and the messages of the magics."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from IPython.core.error import UsageError

from agentdouble.core.code_tool import DEFAULT_AGENT, DEFAULT_SESSION, DEFAULT_USER
from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import tracebacks
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


def refuse_unknown(kind: str, word: str, words: Iterable[str]) -> NoReturn:
    """Fail the cell because of an unknown word, and suggest the closest one."""
    choices = list(words)
    hint = did_you_mean(word, choices)
    refuse(f"Unknown {kind} {word!r}.{hint} Choose from: {', '.join(choices) or 'none'}.")


BASH = "bash"
LANGUAGES = ("python3", "javascript", "typescript", BASH)
_ALIASES = {"python": "python3", "js": "javascript", "node": "javascript", "ts": "typescript"}


@dataclass(frozen=True)
class CellOptions:
    """The options of a cell. ``on`` names a platform, ``given`` and ``out`` variables."""

    session: str
    user: str
    agent: str
    language: str
    timeout_s: int | None
    on: str | None
    given: tuple[str, ...]
    out: str | None
    raises: bool


def parse(line: str) -> CellOptions:
    """Return the options of a cell. Raise UsageError for invalid ones."""
    parsed = _parser().parse_args(words(line))
    return CellOptions(
        session=parsed.session,
        user=parsed.user,
        agent=parsed.agent,
        language=parsed.language,
        timeout_s=parsed.timeout,
        on=parsed.on,
        given=tuple(parsed.given),
        out=parsed.out,
        raises=not parsed.no_raise_error,
    )


def words(line: str) -> list[str]:
    """Split a line as a shell does. Raise UsageError for an unclosed quotation mark."""
    try:
        return shlex.split(line)
    except ValueError as error:
        refuse(f"{line.strip()} cannot be read: {error}. Close the quotation mark.")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Raise an error for invalid arguments."""
        word = next((it for it in message.split() if it.startswith("-")), "")
        hint = did_you_mean(word, self._option_string_actions) if "unrec" in message else ""
        refuse(f"{self.prog}: {message}.{hint} {self.epilog or ''}".rstrip())


def whole_number(text: str) -> int:
    """Return the number that an option gives; its error is one of the parser."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"give a whole number, not {text!r}")
    return int(text)


def option_names() -> tuple[str, ...]:
    """Return the names of a cell's options."""
    return tuple(sorted(_parser()._option_string_actions))


def _parser() -> Parser:
    parser = Parser("%%sandbox", add_help=False, allow_abbrev=False, epilog="%%sandbox? shows all.")
    parser.add_argument("--session", default=DEFAULT_SESSION)
    parser.add_argument("--user", default=DEFAULT_USER)
    parser.add_argument("--agent", default=DEFAULT_AGENT)
    parser.add_argument("--language", default=LANGUAGES[0], type=_language, choices=LANGUAGES)
    parser.add_argument("--timeout", type=whole_number)
    parser.add_argument("--on")
    parser.add_argument("--in", action="append", default=[], dest="given")
    parser.add_argument("--out")
    parser.add_argument("--no-raise-error", action="store_true")
    return parser


def _language(name: str) -> str:
    return _ALIASES.get(name.lower(), name.lower())


def format_duration(seconds: float) -> str:
    """Format a duration for people: ``29m 58s``."""
    minutes, remainder = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "m"), (remainder, "s")]
    return " ".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
