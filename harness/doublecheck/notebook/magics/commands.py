"""``%sandbox``: status, sessions, snapshots, clock and log of the platform that cells run on."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from agentdouble.core import durations
from agentdouble.core.code_tool import DEFAULT_AGENT, DEFAULT_SESSION, DEFAULT_USER
from doublecheck.errors import NotADoubleError
from doublecheck.notebook.magics.options import (
    Parser,
    format_duration,
    refuse,
    refuse_unknown,
    whole_number,
    words,
    write_line,
)
from doublecheck.notebook.magics.platforms import Platforms, refuse_absent
from doublecheck.values.double import SandboxLog

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform
    from doublecheck.client._sync.sandbox import Sandbox

Command: TypeAlias = Callable[[str, Platforms], object]

HELP = """\
%sandbox                      where cells run, and the sessions
%sandbox sessions             the sessions, with their remaining time
%sandbox destroy [SESSION]    end a session (--user, --agent)
%sandbox snapshot NAME        save a session (--session, --user, --agent)
%sandbox resume NAME          restore that session
%sandbox clock                the platform's time
%sandbox clock advance 30m    move it forward: 90s, 30m, 2h, 1h30m
%sandbox clock freeze         stop it; unfreeze restarts it
%sandbox log [--last 5]       what ran where, and the answers
%sandbox use PLATFORM         run cells elsewhere: a variable, a URL,
                              or double
%sandbox reset                end all sessions, empty the log, reset
                              the clock
%sandbox help                 this help

%%sandbox? shows the options of a cell."""


def run(line: str, platforms: Platforms) -> object:
    """Run a subcommand and return the value to show. Raise UsageError for an unknown one."""
    name, _, arguments = line.strip().partition(" ")
    if not name:
        write_line(status(platforms))
        return None
    command = COMMANDS.get(name)
    if command is None:
        refuse_unknown("subcommand", name, COMMANDS)
    try:
        return command(arguments.strip(), platforms)
    except NotADoubleError as error:
        refuse(
            f"%sandbox {line.strip()} works only on a double, but {error.url} is a live "
            "platform. %sandbox use double runs cells on a double."
        )


def _sessions(arguments: str, platforms: Platforms) -> object:
    _refuse_rest("sessions", arguments)
    sessions = _platform(platforms).sandboxes()
    if not sessions:
        write_line("No active sessions: the first cell creates one.")
    return sessions or None


def _destroy(line: str, platforms: Platforms) -> None:
    parser = _parser("destroy")
    parser.add_argument("named", nargs="?")
    parser.add_argument("--session", default=DEFAULT_SESSION)  # as the other commands have it
    arguments = parser.parse_args(words(line))
    arguments.session = arguments.named or arguments.session
    platform = _platform(platforms)
    sandbox = _sandbox(platform, arguments)
    if not sandbox.destroy():
        refuse_absent(sandbox)
    write_line(f"Session {arguments.session!r} was destroyed; its state is lost.")


def _snapshot(line: str, platforms: Platforms) -> None:
    """Take a snapshot of a session under a name. Delete an older one with that name."""
    parser = _parser("snapshot")
    parser.add_argument("name")
    parser.add_argument("--session", default=DEFAULT_SESSION)
    arguments = parser.parse_args(words(line))
    platform = _platform(platforms)
    sandbox = _sandbox(platform, arguments)
    if not sandbox.exists():
        refuse_absent(sandbox)
    snapshot = sandbox.snapshot()
    key = (platform.url, arguments.name)
    before = platforms.snapshots.get(key)
    platforms.snapshots[key] = snapshot
    without = f" Not included: {snapshot.left_out}." if snapshot.left_out else ""
    write_line(
        f"Session {arguments.session!r} is saved as {arguments.name!r}.{without} %sandbox "
        f"resume {arguments.name} restores it."
    )
    if before is not None:
        platform.delete_snapshot(before)


def _resume(name: str, platforms: Platforms) -> None:
    """Return a session to a snapshot."""
    platform = _platform(platforms)
    snapshot = platforms.snapshots.get((platform.url, name))
    if snapshot is None:
        names = [saved for url, saved in platforms.snapshots if url == platform.url]
        refuse_unknown("snapshot", name, names)
    platform.sandbox(instance_id=snapshot.session_id).resume(snapshot)
    write_line(f"The session is restored to {name!r}.")


def _clock(arguments: str, platforms: Platforms) -> None:
    action, _, duration = arguments.partition(" ")
    platform = _platform(platforms)
    if action == "advance":
        try:
            step = durations.parse(duration)
        except ValueError as error:
            refuse(str(error))
        platform.clock.advance(step)
    elif arguments == "freeze":
        platform.clock.freeze()
    elif arguments == "unfreeze":
        platform.clock.unfreeze()
    elif arguments:
        refuse(
            "%sandbox clock takes freeze, unfreeze, or advance and a duration such as 30m, not "
            f"{arguments!r}."
        )
    write_line(_time(platform))


def _log(line: str, platforms: Platforms) -> object:
    parser = Parser("%sandbox log", add_help=False, allow_abbrev=False)
    parser.add_argument("--last", type=whole_number)
    last = parser.parse_args(words(line)).last
    if last is not None and last < 1:
        refuse(f"--last must be a positive number of entries, such as 5, not {last}.")
    entries = SandboxLog(_platform(platforms).journal()[-(last or 0) :])
    if not entries:
        write_line("The log is empty: no requests since the last reset.")
    return entries or None


def _use(name: str, platforms: Platforms) -> None:
    named = platforms.use(name)
    write_line(f"Cells run on {named or 'a double, which starts with the first cell'}.")


def _reset(arguments: str, platforms: Platforms) -> None:
    _refuse_rest("reset", arguments)
    platform = _platform(platforms)
    platform.reset()
    write_line(f"{platform.url} is reset: no sessions, an empty log, and the current time.")


def _help(_arguments: str, _platforms: Platforms) -> None:
    write_line(HELP)


def _parser(command: str) -> Parser:
    parser = Parser(f"%sandbox {command}", add_help=False, allow_abbrev=False)
    parser.add_argument("--user", default=DEFAULT_USER)
    parser.add_argument("--agent", default=DEFAULT_AGENT)
    return parser


def _sandbox(platform: Platform, arguments: Namespace) -> Sandbox:
    return platform.sandbox(arguments.session, user_id=arguments.user, agent=arguments.agent)


def _platform(platforms: Platforms) -> Platform:
    return platforms.current().platform


def _refuse_rest(name: str, arguments: str) -> None:
    if arguments:
        refuse(f"%sandbox {name} takes no further arguments, but got {arguments!r}.")


def _time(platform: Platform) -> str:
    time = platform.clock.read()
    ahead = time.moved.total_seconds()
    return f"{time}, {format_duration(ahead)} ahead" if ahead >= 1 else str(time)


COMMANDS: Mapping[str, Command] = {
    "sessions": _sessions,
    "destroy": _destroy,
    "snapshot": _snapshot,
    "resume": _resume,
    "clock": _clock,
    "log": _log,
    "use": _use,
    "reset": _reset,
    "help": _help,
}


_MORE = "%sandbox help lists the commands."


def status(platforms: Platforms) -> str:
    """Describe where cells run and which sessions exist."""
    current = platforms.started()
    if current is None:
        return f"Cells run on a double, which starts with the first cell. {_MORE}"
    lines = [f"Cells run on {current}."]
    if current.platform.target.admin:
        sessions = ", ".join(
            f"{session.user_session_id} ({format_duration(session.remaining_s)} left)"
            for session in current.platform.sandboxes()
        )
        lines.append(f"Sessions: {sessions or 'none yet'}.")
    others = [name for name in platforms.names() if name != current.name]
    lines.append(f"%sandbox use takes {', '.join(others)}, or a URL. {_MORE}")
    return "\n".join(lines)
