"""Sessions by the names that cells give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentdouble.run_code import DEFAULT_AGENT, Invocation

if TYPE_CHECKING:
    from doublecheck.platform import Platform


def user_session_id(user: str, session: str) -> str:
    """Return the id of a user's session, as a platform has it."""
    return Invocation(user, session, DEFAULT_AGENT).user_session_id


def living(platform: Platform, user: str) -> tuple[str, ...]:
    """Return the names of a user's living sessions on a double, () on a live platform."""
    if not platform.target.admin:
        return ()
    prefix = user_session_id(user, "")
    ids = (session.user_session_id for session in platform.sessions())
    return tuple(sorted(id_.removeprefix(prefix) for id_ in ids if id_.startswith(prefix)))
