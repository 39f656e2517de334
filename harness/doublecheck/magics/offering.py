"""What the tab key offers on the lines of the magics: options, their values, subcommands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentdouble.run_code import DEFAULT_USER
from doublecheck.magics import arming, commands, options
from doublecheck.magics.asking import asked
from doublecheck.magics.platforms import Platforms
from doublecheck.magics.sessions import living

_OPERATIONS = ("InvokeTool", "invoke", "ping", "run", "run_sse", "mcp:", "a2a:message/send")
_DURATIONS = ("90s", "30m", "2h")
_FREE = ("--timeout", "--out", "--user", "--last")  # nobody knows what is meant


@dataclass(frozen=True)
class Offer:
    """What may stand where ``fragment`` stands; with ``more``, Python's names may, too."""

    fragment: str
    words: tuple[str, ...] = ()
    more: bool = False


def of_cell(before: str, platforms: Platforms) -> Offer:
    """Return what may stand behind ``%%sandbox``, after what is there already."""
    given, fragment = _split(before)
    option, equals, value = fragment.partition("=")
    if equals:
        return _offer(value, _values(option, given, platforms))
    last = given[-1] if given else ""
    if last in ("--session", "--language", "--on", *_FREE):
        return _offer(fragment, _values(last, given, platforms))
    return _offer(fragment, [one for one in options.option_names() if one not in given])


def of_code(before: str, after: str, options_line: str, platforms: Platforms) -> Offer:
    """Return what may stand between the parts of a cell's code, as the session's kernel says."""
    given = options.parse(options_line)
    with asked(platforms, given.on) as platform:
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
    """Return what may stand behind ``%sandbox``, after what is there already."""
    given, fragment = _split(before)
    if not given:
        return _offer(fragment, commands.COMMANDS)
    if given[-1] in _FREE:
        return Offer(fragment)
    offered = _offer(fragment, _arguments(given[0], given[1:], platforms))
    return Offer(offered.fragment, offered.words, more=given[0] == "use")


def _arguments(command: str, given: Sequence[str], platforms: Platforms) -> Iterable[str]:
    if command == "faults":
        return _faults(given, platforms)
    if command == "clock" and list(given) == ["advance"]:
        return _DURATIONS
    if command == "destroy":
        return (*_living(given, platforms), "--user")
    once = {"clock": ("advance",), "log": ("--last",), "use": platforms.names()}
    return () if given else once.get(command, ())


def _faults(given: Sequence[str], platforms: Platforms) -> Iterable[str]:
    if not given:
        return (*arming.kinds(), "clear", *arming.BY_ID)
    if given[0] in arming.BY_ID:
        return _armed(platforms)
    if given[0] not in arming.kinds():
        return ()
    return _OPERATIONS if len(given) == 1 else arming.options_of(given[0])


def _values(option: str, given: Sequence[str], platforms: Platforms) -> Iterable[str]:
    if option == "--session":
        return _living(given, platforms)
    if option == "--language":
        return options.LANGUAGES
    return platforms.names() if option == "--on" else ()


def _living(given: Sequence[str], platforms: Platforms) -> Iterable[str]:
    user = _value_of("--user", given) or DEFAULT_USER
    with asked(platforms, _value_of("--on", given)) as platform:
        return () if platform is None else living(platform, user)


def _armed(platforms: Platforms) -> Iterable[str]:
    with asked(platforms) as platform:
        return () if platform is None else [one.id for one in platform.faults.plan().faults]


def _value_of(option: str, given: Sequence[str]) -> str | None:
    if option not in given[:-1]:
        return None
    return given[given.index(option) + 1]


def _split(before: str) -> tuple[list[str], str]:
    """Return the words that are there, and the one that is being written."""
    *given, fragment = before.split(" ")
    return [word for word in given if word], fragment


def _offer(fragment: str, words: Iterable[str]) -> Offer:
    return Offer(fragment, tuple(word for word in words if word.startswith(fragment)))
