"""The endpoints of API-server mode as requests, for checks that ask each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doublecheck.contracts.agent_users import ALONE, ROUTES, User, ends_in_error, new_id
from doublecheck.wire import api_server

if TYPE_CHECKING:
    import httpx

    from doublecheck.client._sync.platform import Platform


@dataclass(frozen=True)
class Endpoint:
    """A request to an endpoint; ``name`` says which one, and not whose session it names."""

    name: str
    method: str
    path: str
    content: bytes = b""

    def ask(self, platform: Platform, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Send the request; return the answer, unchanged."""
        return platform.request(
            self.method,
            self.path,
            surface="api_server",
            headers={**(ALONE if self.content else {}), **(headers or {})},
            content=self.content,
        )

    def works(self, answer: httpx.Response) -> bool:
        """Whether an answer is a success, and a run ends without an error."""
        return answer.is_success and not (self.path in ROUTES and ends_in_error(answer))


def every(user: User, session: str) -> Iterator[Endpoint]:
    """Yield a request to each endpoint; the last one deletes the session."""
    yield from general()
    yield from of_session(user, session)
    yield deletion(user, session)


def general() -> Iterator[Endpoint]:
    """Yield the requests that name no session."""
    for path in ("/list-apps", "/version"):
        yield Endpoint(f"GET {path}", "GET", path)


def of_session(user: User, session: str, message: str = "hello") -> Iterator[Endpoint]:
    """Yield the requests about a user's sessions; they read first, and delete none."""
    sessions = api_server.sessions_path(user.app, user.id)
    at = api_server.session_path(user.app, user.id, session)
    created = api_server.session_path(user.app, user.id, new_id())
    run = json.dumps(user.body(session, message)).encode()
    yield Endpoint("GET sessions", "GET", sessions)
    yield Endpoint("GET session", "GET", at)
    yield Endpoint("GET artifacts", "GET", f"{at}/artifacts")
    yield Endpoint("POST sessions", "POST", sessions, b"{}")
    yield Endpoint("POST session", "POST", created, b"{}")
    for path in ROUTES:
        yield Endpoint(f"POST {path}", "POST", path, run)


def deletion(user: User, session: str) -> Endpoint:
    """Return the request that deletes a session."""
    return Endpoint("DELETE session", "DELETE", api_server.session_path(user.app, user.id, session))
