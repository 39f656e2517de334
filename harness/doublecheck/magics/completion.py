"""Completion with the tab key: on the lines of the magics, and in cells that run in the sandbox.

A completion never starts a double, waits, or appears in the journal. In a cell that runs in the
sandbox the names of the notebook are not offered, because the sandbox does not have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, completion_matcher

from agentdouble.code_tool import DEFAULT_USER
from doublecheck.client._sync.platform import Platform
from doublecheck.magics import commands, fault_commands, options
from doublecheck.magics.platforms import Platforms
from doublecheck.magics.sessions import living

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext

_PATIENCE_S = 2.0
_OPERATIONS = ("InvokeTool", "invoke", "ping", "run", "run_sse", "mcp:", "a2a:message/send")
_DURATIONS = ("90s", "30m", "2h")
_FREE = ("--timeout", "--out", "--user", "--last")  # no completion can know these values
_MAGIC = "%%sandbox"
_CELL = re.compile(r"%%sandbox(?:\s|$)")
_BEHIND_CELL = re.compile(r"%%sandbox\s+(.*)", re.DOTALL)
_BEHIND_LINE = re.compile(r"\s*(?:[\w, ]+=\s*)?%sandbox\s+(.*)", re.DOTALL)
_BEFORE_ALL_OTHERS = 1_000

Matcher = Callable[["CompletionContext"], dict[str, Any]]


@contextmanager
def connection(platforms: Platforms, name: str | None = None) -> Iterator[Platform | None]:
    """Yield a connection to a double, the one in use for None; None if none has started.

    It is a separate connection, because a notebook's platform records its requests for saved tests.
    """
    known = platforms.known(name)
    if known is None or not known.platform.target.admin:
        yield None
        return
    with Platform(known.platform.target, timeout_s=_PATIENCE_S) as platform:
        yield platform


@dataclass(frozen=True)
class Offer:
    """The completions of ``fragment``; with ``more``, Python's names are offered too."""

    fragment: str
    words: tuple[str, ...] = ()
    more: bool = False


def of_cell(before: str, platforms: Platforms) -> Offer:
    """Complete the line of ``%%sandbox``."""
    given, fragment = _split(before)
    option, equals, value = fragment.partition("=")
    if equals:
        return _starting_with(value, _values(option, given, platforms))
    last = given[-1] if given else ""
    if last in ("--session", "--language", "--on", *_FREE):
        return _starting_with(fragment, _values(last, given, platforms))
    return _starting_with(fragment, [one for one in options.option_names() if one not in given])


def of_code(before: str, after: str, options_line: str, platforms: Platforms) -> Offer:
    """Complete a cell's code, as the session's kernel does."""
    given = options.parse(options_line)
    with connection(platforms, given.on) as platform:
        if platform is None or given.language == options.BASH:
            return Offer("")
        found = platform.complete(
            before + after,
            len(before),
            given.language,
            user_id=given.user,
            session_id=given.session,
        )
    return Offer(before[found.start :], found.matches)


def of_line(before: str, platforms: Platforms) -> Offer:
    """Complete the line of ``%sandbox``."""
    given, fragment = _split(before)
    if not given:
        return _starting_with(fragment, commands.COMMANDS)
    if given[-1] in _FREE:
        return Offer(fragment)
    offered = _starting_with(fragment, _arguments(given[0], given[1:], platforms))
    return Offer(offered.fragment, offered.words, more=given[0] == "use")


def _arguments(command: str, given: Sequence[str], platforms: Platforms) -> Iterable[str]:
    if command == "faults":
        return _faults(given, platforms)
    if command == "clock" and list(given) == ["advance"]:
        return _DURATIONS
    if command == "destroy":
        return (*_living(given, platforms), "--user")
    if command == "snapshot":
        names_session = bool(given) and given[-1] == "--session"
        return _living((), platforms) if names_session else ("--session", "--user")
    if command == "resume" or list(given) == ["delete"]:
        return [name for _, name in platforms.snapshots]
    once = {
        "clock": ("advance", "freeze", "unfreeze"),
        "log": ("--last",),
        "snapshots": ("delete",),
        "use": platforms.names(),
    }
    return () if given else once.get(command, ())


def _faults(given: Sequence[str], platforms: Platforms) -> Iterable[str]:
    if not given:
        return (*fault_commands.kinds(), "clear", *fault_commands.BY_ID)
    if given[0] in fault_commands.BY_ID:
        return _armed(platforms)
    if given[0] not in fault_commands.kinds():
        return ()
    return _OPERATIONS if len(given) == 1 else fault_commands.options_of(given[0])


def _values(option: str, given: Sequence[str], platforms: Platforms) -> Iterable[str]:
    if option == "--session":
        return _living(given, platforms)
    if option == "--language":
        return options.LANGUAGES
    return platforms.names() if option == "--on" else ()


def _living(given: Sequence[str], platforms: Platforms) -> Iterable[str]:
    user = _value_of("--user", given) or DEFAULT_USER
    with connection(platforms, _value_of("--on", given)) as platform:
        return () if platform is None else living(platform, user)


def _armed(platforms: Platforms) -> Iterable[str]:
    with connection(platforms) as platform:
        return () if platform is None else [one.id for one in platform.faults.plan().faults]


def _value_of(option: str, given: Sequence[str]) -> str | None:
    if option not in given[:-1]:
        return None
    return given[given.index(option) + 1]


def _split(before: str) -> tuple[list[str], str]:
    """Split a line into its complete words and the one at the cursor."""
    *given, fragment = before.split(" ")
    return [word for word in given if word], fragment


def _starting_with(fragment: str, words: Iterable[str]) -> Offer:
    return Offer(fragment, tuple(word for word in words if word.startswith(fragment)))


def matcher(platforms: Platforms) -> Matcher:
    """Return the matcher that IPython calls for completions."""

    @completion_matcher(identifier="doublecheck", priority=_BEFORE_ALL_OTHERS, api_version=2)
    def matches(context: CompletionContext) -> dict[str, Any]:
        try:
            offer = _offer(context, platforms)
        except Exception:
            offer = Offer("")
        return {"completions": []} if offer is None else _answer(offer)

    return matches  # type: ignore[no-any-return]


class _Nothing(Sized):
    """No completions, but with length 1: for an empty list IPython would call other matchers."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[SimpleCompletion]:
        return iter(())


def _offer(context: CompletionContext, platforms: Platforms) -> Offer | None:
    """Return the completions, or None if the line is not the magics'."""
    before = context.text_until_cursor
    lines = context.full_text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not _CELL.match(lines[first]):
        behind = _BEHIND_LINE.fullmatch(before)
        return of_line(behind[1], platforms) if behind else None
    if context.cursor_line > first:
        above = "".join(f"{line}\n" for line in lines[first + 1 : context.cursor_line])
        after = "\n".join(
            [context.line_with_cursor[len(before) :], *lines[context.cursor_line + 1 :]]
        )
        options_line = lines[first].removeprefix(_MAGIC)
        return of_code(above + before, after, options_line, platforms)
    behind = _BEHIND_CELL.fullmatch(before)
    return of_cell(behind[1], platforms) if behind else None


def _answer(offer: Offer) -> dict[str, Any]:
    found = [SimpleCompletion(text=word, type="magic") for word in offer.words]
    return {
        "completions": found or _Nothing(),
        "matched_fragment": offer.fragment,
        "suppress": not offer.more,
        "ordered": True,
    }
