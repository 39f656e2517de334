"""Probes of API-server mode: the applications and their sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublecheck.probes.probe import NotSettledError, probe
from doublecheck.probes.probing import REFERENCE_AGENT, Probing, unlike

if TYPE_CHECKING:
    import httpx


@probe("U-LIST-APPS", "api_server")
def list_apps(at: Probing) -> str:
    """List them."""
    document = at.ask("GET", "/list-apps").json()
    if isinstance(document, list):
        return "names"
    if isinstance(document, dict) and "apps" in document:
        return "detailed"
    raise unlike("the body is", document)


@probe("U-SESSION-FIELDS", "api_server", writes=True)
def session_fields(at: Probing) -> str:
    """Look at a session that was just made."""
    fields = _made(at).keys()
    if fields <= {"id", "events"}:
        return "id-only"
    if {"id", "appName", "userId"} <= fields:
        return "full"
    raise unlike("the fields are", sorted(fields))


@probe("U-SESSION-CREATE", "api_server", writes=True)
def session_create(at: Probing) -> str:
    """Ask for an id in the body."""
    wanted = f"s-{at.token}"
    return "fields" if _made(at, {"sessionId": wanted})["id"] == wanted else "ignored"


@probe("U-SESSION-DUPLICATE", "api_server", writes=True)
def session_duplicate(at: Probing) -> str:
    """Make one of the same id again."""
    path = f"{sessions(at)}/s-{at.token}"
    at.finally_(lambda: at.ask("DELETE", path))
    first, second = (at.ask("POST", path, {}).status_code for _ in range(2))
    answers = {409: "409", 400: "400", 200: "existing"}
    if first != 200 or second not in answers:
        raise unlike("the two creations are answered", f"HTTP {first} and {second}")
    return answers[second]


@probe("U-SESSION-LIST", "api_server", writes=True)
def session_list(at: Probing) -> str:
    """List a user's sessions."""
    _made(at)
    listed = at.ask("GET", sessions(at)).json()
    if not isinstance(listed, list) or not listed:
        raise unlike("the list is", listed)
    return "ids" if isinstance(listed[0], str) else "sessions"


@probe("U-SESSION-DELETE", "api_server", writes=True)
def session_delete(at: Probing) -> str:
    """Delete a session, and then once more, when it is unknown."""
    path = f"{sessions(at)}/{_made(at)['id']}"
    known, unknown = at.ask("DELETE", path), at.ask("DELETE", path)
    if known.status_code == 204:
        return "204"
    answers = {200: "null", 404: "404-unknown"}
    if known.status_code != 200 or unknown.status_code not in answers:
        raise unlike("the answers are", f"HTTP {known.status_code}, {unknown.status_code}")
    return answers[unknown.status_code]


def agent(at: Probing) -> str:
    """Return the agent to ask: the reference one, if there is one."""
    document = at.ask("GET", "/list-apps").json()
    apps = document.get("apps", ()) if isinstance(document, dict) else document
    names = [one["name"] if isinstance(one, dict) else str(one) for one in apps]
    if not names:
        raise NotSettledError("no agent is listed")
    return REFERENCE_AGENT if REFERENCE_AGENT in names else names[0]


def sessions(at: Probing) -> str:
    """Return the path of the sessions of a user that no other probe has."""
    return f"/apps/{agent(at)}/users/u-{at.token}/sessions"


def _made(at: Probing, body: Any = None) -> dict[str, Any]:
    """Make a session that is deleted in the end."""
    path = sessions(at)
    made = read(at.ask("POST", path, body or {}))
    at.finally_(lambda: at.ask("DELETE", f"{path}/{made['id']}"))
    return made


def read(response: httpx.Response) -> dict[str, Any]:
    """Return the session of an answer; raise NotSettledError if it is none."""
    document = response.json() if response.is_success else None
    if not isinstance(document, dict) or "id" not in document:
        raise NotSettledError(f"no session is made: HTTP {response.status_code}")
    return document
