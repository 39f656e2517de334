"""Sessions by the names that cells give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from agentdouble.code_tool import DEFAULT_AGENT, Invocation
from doublecheck.magics.messages import refuse

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform
    from doublecheck.errors import RefusedError

_BAD_REQUEST = 400
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,200}")


def user_session_id(user: str, session: str) -> str:
    """Return the UserSessionId of a user's session."""
    return Invocation(user, session, DEFAULT_AGENT).user_session_id


def refuse_name(user: str, session: str, error: RefusedError) -> NoReturn:
    """Raise UsageError if a session's name was refused, otherwise the platform's refusal."""
    if error.status == _BAD_REQUEST and not _PLAIN.fullmatch(user_session_id(user, session)):
        refuse(
            f"The platform takes no session {session!r} of user {user!r}: write letters, digits, "
            "'_' and '-', fewer than 200 in all."
        )
    raise error


def refuse_absent(platform: Platform, user: str, session: str) -> NoReturn:
    """Raise UsageError for a session that is not living."""
    named = ", ".join(living(platform, user)) or "none"
    there = f" Living are: {named}." if platform.target.admin else ""
    refuse(f"There is no living session {session!r}.{there}")


def living(platform: Platform, user: str) -> tuple[str, ...]:
    """Return the names of a user's active sessions on a double, () on a live platform."""
    if not platform.target.admin:
        return ()
    prefix = user_session_id(user, "")
    ids = (session.user_session_id for session in platform.sessions())
    return tuple(sorted(id_.removeprefix(prefix) for id_ in ids if id_.startswith(prefix)))
