"""Kernelspecs: the languages of new sessions, and one for each living session of an agent.

A session's kernelspec has a name of its own, which the next session of the same user session has
again: so a notebook that was saved with it opens the agent's kernel the next time, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from agentdouble.core import ledger
from agentdouble.errors import SandboxError
from agentdouble.sandbox import languages
from agentdouble.sandbox.ended_sessions import EndedSession
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.session import SandboxSession

# The names of kernelspecs, and of their languages.
LANGUAGES: Mapping[str, str] = {"python3": "python", "javascript": "javascript"}
_JUPYTERS = {"typescript": "typescript", **LANGUAGES}  # Jupyter's names for languages
SESSION = "session"  # begins the names of sessions' kernelspecs
_READABLE = 40  # characters of a session's name in the name of its kernelspec
_SHOWN = 60  # characters of a session's name in a launcher


def spec_name(key: InstanceKey, kernel_id: str) -> str:
    """Return the name of a session's kernelspec, of the characters that Jupyter allows."""
    readable = re.sub(r"[^a-z0-9]+", "-", key.user_session_id.lower())[:_READABLE].strip("-")
    return "-".join(filter(None, (SESSION, readable, kernel_id[:8])))


def display_name(key: InstanceKey, tool: str | None, language: str, agents: Collection[str]) -> str:
    """Return what a launcher shows: "user / session (agent)", or the session's name and its tool.

    ``agents`` are the names of those that the double hosts. ``tool`` is None for the default.
    """
    name = key.user_session_id
    about = [] if tool is None else [tool]
    if ledger.choose("U-USER-SESSION-ID") != "session":
        agent, shown = _parts(name, agents)
        name, about = shown, [*filter(None, [agent]), *about]
    if language != languages.PYTHON.name:
        about.append(languages.find(language).display_name)
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    return f"{shown} ({', '.join(about)})" if about else f"{shown} (session)"


def _parts(name: str, agents: Collection[str]) -> tuple[str, str]:
    """Split a session's name into its agent and the rest: "user / session", if it tells them.

    Each part can have an underscore, so the name tells only the agents that are known, and of the
    others those of a name of three parts.
    """
    known = max((it for it in agents if name.startswith(f"{it}_")), key=len, default=None)
    agent, _, rest = name.partition("_") if known is None else (known, "", name[len(known) + 1 :])
    user, _, session = rest.partition("_")
    if user and session and "_" not in session:
        return agent, f"{user} / {session}"
    return ("", name) if known is None or not rest else (agent, rest)


def language_spec(name: str) -> dict[str, Any]:
    """Return the kernelspec of new sessions for a language."""
    return _spec(name, f"{languages.find(name).display_name} (sandbox)", LANGUAGES[name], {})


def session_spec(name: str, title: str, language: str, session: SandboxSession) -> dict[str, Any]:
    """Return the kernelspec of a living session, with the names of the session."""
    names = {
        "tool_id": session.key.tool_id,
        "user_session_id": session.key.user_session_id,
        "session_id": session.id,
    }
    return _spec(name, title, _JUPYTERS[language], {"agentdouble": names})


def _spec(name: str, title: str, language: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    spec = {
        "argv": [],
        "env": {},
        "display_name": title,
        "language": language,
        "interrupt_mode": "signal",
        "metadata": metadata,
    }
    return {"name": name, "spec": spec, "resources": {}}


def ended_error(ended: EndedSession, snapshot: str | None) -> SandboxError:
    """Return the error for the kernelspec of a session that has ended; see ``advice_for``."""
    name, why = ended.key.user_session_id, ended.dated_reason
    # JupyterLab shows it in a dialog that does not wrap lines.
    message = f"The session {name!r} has ended: {why}.\n{advice_for(snapshot)}"
    return SandboxError(message, "InvalidResource.Ended", 409)


def advice_for(snapshot: str | None) -> str:
    """Return what to do after the end of a session; ``snapshot`` is that with which it wakes."""
    if snapshot is not None:
        return (
            f"It sleeps: resume it from its snapshot {snapshot}, and open its kernel again.\n"
            "The console resumes it with a button; agentdouble session list shows the command."
        )
    return (
        "Its kernel can be opened again when an agent uses it again; variables and files are lost."
    )


def unknown_error(name: str) -> SandboxError:
    """Return the error for a kernelspec that does not exist."""
    return SandboxError(
        f"There is no kernelspec {name[:80]!r}: its session may have ended. "
        "GET /jupyter/api/kernelspecs lists the languages and the living sessions.",
        "InvalidResource.NotFound",
        404,
    )
