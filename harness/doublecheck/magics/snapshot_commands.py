"""``%sandbox snapshot``, ``resume`` and ``snapshots``: sessions that are kept under a name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from agentdouble.code_tool import DEFAULT_SESSION, DEFAULT_USER
from doublecheck.client import transport
from doublecheck.magics.messages import refuse, refuse_unknown, write_line
from doublecheck.magics.options import Parser, words
from doublecheck.magics.platforms import KeptSession, Platforms
from doublecheck.magics.sessions import refuse_absent
from doublecheck.wire import sandbox

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform


def take(rest: str, platforms: Platforms) -> None:
    """Take a snapshot of a session under a name; one that had the name is deleted."""
    given = _read(rest)
    platform = platforms.current().platform
    if not _is_living(platform, given.user, given.session):
        refuse_absent(platform, given.user, given.session)
    snapshot = platform.snapshot_session(user_id=given.user, session_id=given.session)
    before = platforms.snapshots.get((platform.url, given.name))
    platforms.snapshots[platform.url, given.name] = KeptSession(given.session, snapshot)
    without = f" Not in it: {snapshot.left_out}." if snapshot.left_out else ""
    write_line(
        f"The session {given.session!r} is kept as {given.name!r}.{without} "
        f"%sandbox resume {given.name} returns it to this."
    )
    if before is not None:
        platform.delete_session_snapshot(before.snapshot)


def resume(rest: str, platforms: Platforms) -> None:
    """Return a session to how it was in a snapshot."""
    kept = _find(rest, platforms)
    platforms.current().platform.resume_session(kept.snapshot)
    write_line(f"The session {kept.session!r} is as it was in {rest!r}.")


def show(rest: str, platforms: Platforms) -> None:
    """Show the names of the snapshots, or delete one."""
    action, _, name = rest.partition(" ")
    if action == "delete":
        _delete(name.strip(), platforms)
    elif rest:
        refuse(f"%sandbox snapshots takes delete and the name of a snapshot, not {rest!r}.")
    else:
        _list(platforms)


def _list(platforms: Platforms) -> None:
    url = platforms.current().platform.url
    kept = {name: one for (at, name), one in platforms.snapshots.items() if at == url}
    for name, one in kept.items():
        without = f", without {one.snapshot.left_out}" if one.snapshot.left_out else ""
        write_line(f"{name}: the session {one.session!r}, at {one.snapshot.created_at}{without}")
    if not kept:
        write_line("There is no snapshot: %sandbox snapshot NAME takes one.")


def _delete(name: str, platforms: Platforms) -> None:
    kept = _find(name, platforms)
    platform = platforms.current().platform
    platform.delete_session_snapshot(kept.snapshot)
    del platforms.snapshots[platform.url, name]
    write_line(f"The snapshot {name!r} is deleted.")


def _find(name: str, platforms: Platforms) -> KeptSession:
    url = platforms.current().platform.url
    kept = platforms.snapshots.get((url, name))
    if kept is None:
        refuse_unknown("snapshot", name, [name for at, name in platforms.snapshots if at == url])
    return kept


def _read(rest: str) -> argparse.Namespace:
    parser = Parser("%sandbox snapshot", add_help=False, allow_abbrev=False)
    parser.add_argument("name")
    parser.add_argument("--session", default=DEFAULT_SESSION)
    parser.add_argument("--user", default=DEFAULT_USER)
    return parser.parse_args(words(rest))


def _is_living(platform: Platform, user: str, session: str) -> bool:
    when = transport.signing_time()
    return platform._call(sandbox.find_session(platform.target, user, session, when)) is not None
