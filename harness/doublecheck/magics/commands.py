"""``%sandbox``: status, sessions, clock, faults and log of the platform that cells run on."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from agentdouble.code_tool import DEFAULT_SESSION, DEFAULT_USER
from doublecheck.errors import NotADoubleError
from doublecheck.magics import fault_commands, snapshot_commands
from doublecheck.magics.durations import format_duration, parse_duration
from doublecheck.magics.messages import refuse, refuse_unknown, write_line
from doublecheck.magics.options import Parser, words
from doublecheck.magics.platforms import Platforms
from doublecheck.magics.sessions import refuse_absent
from doublecheck.wire import admin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from doublecheck.client._sync.platform import Platform
    from doublecheck.values.double import Session

Command: TypeAlias = Callable[[str, Platforms], object]

_COLUMNS = 70  # JupyterLab breaks longer lines anywhere, also within a word
HELP = """\
%sandbox                      where cells run, and what there is
%sandbox sessions             the sessions, with their remaining life
%sandbox destroy [SESSION]    end one (--user NAME: whose it is)
%sandbox snapshot NAME        keep how one is now (--session, --user)
%sandbox resume NAME          return that session to it
%sandbox snapshots            the snapshots; delete NAME: one of them
%sandbox clock                the platform's time
%sandbox clock advance 30m    move it forward: 90s, 30m, 2h, 1h30m
%sandbox clock freeze         stop it; unfreeze lets it go on
%sandbox faults               the faults that are armed
%sandbox faults clear         take all of them away; disarm ID: one,
                              release ID: the calls that it holds
%sandbox log [--last 5]       what was asked, and what was answered
%sandbox use [NAME=]PLATFORM  run cells elsewhere: an expression,
                              a URL, or double
%sandbox url                  where the platform answers
%sandbox reset                end all sessions, empty the log, set
                              the clock back
%sandbox help                 this

%sandbox faults fail InvokeTool --nth 2 --status 503 arms a fault:
{kinds}

%%sandbox? says what a cell can be given."""


def run(line: str, platforms: Platforms) -> object:
    """Run a subcommand and return the value to show; raise UsageError for an unknown one."""
    name, _, rest = line.strip().partition(" ")
    if not name:
        write_line(status(platforms))
        return None
    command = COMMANDS.get(name)
    if command is None:
        refuse_unknown("subcommand", name, COMMANDS)
    try:
        return command(rest.strip(), platforms)
    except NotADoubleError as error:
        _refuse_live(f"%sandbox {line.strip()}", error)


def _refuse_live(command: str, error: NotADoubleError) -> NoReturn:
    refuse(
        f"{command} is for doubles only, and {error.url} is a live platform. "
        "%sandbox use double runs cells on a double."
    )


def _sessions(rest: str, platforms: Platforms) -> object:
    _refuse_rest("sessions", rest)
    found = _platform(platforms).sessions()
    if not found:
        write_line("No session is living: the first cell makes one.")
    return found or None


def _destroy(rest: str, platforms: Platforms) -> None:
    parser = Parser("%sandbox destroy", add_help=False, allow_abbrev=False)
    parser.add_argument("session", nargs="?", default=DEFAULT_SESSION)
    parser.add_argument("--user", default=DEFAULT_USER)
    given = parser.parse_args(words(rest))
    platform = _platform(platforms)
    if platform.destroy_session(user_id=given.user, session_id=given.session):
        write_line(f"The session {given.session!r} is destroyed; its state is gone.")
        return
    refuse_absent(platform, given.user, given.session)


def _clock(rest: str, platforms: Platforms) -> None:
    action, _, duration = rest.partition(" ")
    platform = _platform(platforms)
    if action == "advance":
        platform.clock.advance(parse_duration(duration))
    elif rest == "freeze":
        platform.clock.freeze()
    elif rest == "unfreeze":
        platform.clock.unfreeze()
    elif rest:
        refuse(
            "%sandbox clock takes freeze, unfreeze, or advance and a duration, 30m say, "
            f"not {rest!r}."
        )
    write_line(_time(platform))


def _faults(rest: str, platforms: Platforms) -> object:
    return fault_commands.run(rest, _platform(platforms).faults)


def _log(rest: str, platforms: Platforms) -> object:
    parser = Parser("%sandbox log", add_help=False, allow_abbrev=False)
    parser.add_argument("--last", type=int)
    last = parser.parse_args(words(rest)).last
    if last is not None and last < 1:
        refuse(f"--last is how many of the last entries to show, 5 say, not {last}.")
    entries = _platform(platforms).journal()
    if not entries:
        write_line("The log is empty: nothing has been asked since the last reset.")
    return (entries if last is None else entries[-last:]) or None


def _use(rest: str, platforms: Platforms) -> None:
    named = platforms.use(rest)
    write_line(f"Cells run on {named or 'a double, which starts with the first of them'}.")


def _url(rest: str, platforms: Platforms) -> str:
    _refuse_rest("url", rest)
    return _platform(platforms).url


def _reset(rest: str, platforms: Platforms) -> None:
    _refuse_rest("reset", rest)
    platform = _platform(platforms)
    platform.reset()
    write_line(f"{platform.url} has no session, an empty log, and its clock is set back.")


def _help(_rest: str, _platforms: Platforms) -> None:
    kinds = f"{', '.join(fault_commands.kinds())}."
    write_line(HELP.format(kinds=textwrap.fill(kinds, _COLUMNS)))


def _platform(platforms: Platforms) -> Platform:
    return platforms.current().platform


def _refuse_rest(name: str, rest: str) -> None:
    if rest:
        refuse(f"%sandbox {name} takes no further arguments, but got {rest!r}.")


def _time(platform: Platform) -> str:
    time = platform._call(admin.clock(platform.target))
    ahead = time.moved.total_seconds()
    return f"{time}, {format_duration(ahead)} ahead" if ahead >= 1 else str(time)


COMMANDS: Mapping[str, Command] = {
    "sessions": _sessions,
    "destroy": _destroy,
    "snapshot": snapshot_commands.take,
    "resume": snapshot_commands.resume,
    "snapshots": snapshot_commands.show,
    "clock": _clock,
    "faults": _faults,
    "log": _log,
    "use": _use,
    "url": _url,
    "reset": _reset,
    "help": _help,
}


_MORE = "%sandbox help says what it can do."


def status(platforms: Platforms) -> str:
    """Describe where cells run and which sessions exist."""
    current = platforms.known_current()
    if current is None:
        return f"Cells run on a double, which starts with the first of them. {_MORE}"
    lines = [f"Cells run on {current}.", *_doubles(current.platform)]
    others = [f"  {one}" for one in platforms.others(than=current)]
    if others:
        lines += ["There are also (%sandbox use NAME):", *others]
    return "\n".join([*lines, _MORE])


def _doubles(platform: Platform) -> Iterator[str]:
    if not platform.target.admin:
        return
    sessions = ", ".join(map(_session, platform.sessions()))
    yield f"Sessions: {sessions or 'none yet'}."
    armed = platform.faults.plan().faults
    if armed:
        yield f"Faults: {', '.join(fault.described for fault in armed)}."


def _session(session: Session) -> str:
    return f"{session.user_session_id} ({format_duration(session.remaining_s)} left)"
