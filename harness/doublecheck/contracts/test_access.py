"""Checks of authentication and access (AUT)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import hosting
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.hosting import Hosted
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import RefusedError
from doublecheck.secret import Secret
from doublecheck.values.agents import AgentEvent
from doublecheck.wire import api_server

NOBODYS = Secret("doublecheck-nobody-has-this-key")
REFUSED = (401, 403)


@clause("AUT-01")
def test_no_authentication_is_asked_for(platform: Platform) -> None:
    """A request without credentials is answered."""
    if platform.target.api_key is not None or not platform.target.loopback:
        pytest.skip(f"{Verdict.NOT_APPLICABLE.value}: this target is not a local one without a key")

    answers = [platform.request("GET", path) for path in ("/list-apps", "/version")]

    assert [] == [one for one in answers if "authorization" in one.request.headers]
    assert [200, 200] == [one.status_code for one in answers], [one.text for one in answers]


@clause("AUT-02", reference_app=True, writes=True)
def test_the_gateway_authenticates_and_the_endpoints_stay(hosted: Hosted) -> None:
    """A call without the key of the runtime, or with a wrong one, is refused; with it, it works."""
    strangers = [hosted.with_key(hosting.AGENTS, key) for key in (None, NOBODYS)]
    asked = ("GET", "/list-apps"), ("GET", "/version"), ("POST", "/run"), ("POST", "/run_sse")

    refused = [one.request(*what).status_code for one in strangers for what in asked]
    known = hosted.at(hosting.AGENTS)
    app = known.list_apps()[0]
    session = known.create_session(app, user_id=_user())
    said = known.run(session, "say hello")
    streamed = list(known.run_sse(session, "say hello"))
    known.delete_session(session)

    assert [] == [status for status in refused if status not in REFUSED], refused
    assert "hello" in _text(said)
    assert "hello" in _text(streamed)


@clause("AUT-03", reference_app=True, writes=True)
def test_a_session_is_not_found_by_another_identity(hosted: Hosted) -> None:
    """Another identity cannot read, list, continue or delete it; its owner still can."""
    mine, other, user = hosted.at(hosting.AGENTS), hosted.as_other(hosting.AGENTS), _user()
    app = mine.list_apps()[0]
    session = mine.create_session(app, user_id=user)
    path = api_server.session_path(app, user, session.id)

    reads, deletes = (other.request(method, path).status_code for method in ("GET", "DELETE"))
    with pytest.raises(RefusedError) as continued:
        other.run(session, "say hello")
    listed = other.request("GET", path.rpartition("/")[0])

    assert [404, 404, 404] == [reads, deletes, continued.value.status]
    assert session.id not in listed.text
    assert session.id == mine.get_session(app, session.id, user_id=user).id
    mine.delete_session(session)


def _user() -> str:
    return f"doublecheck-{uuid.uuid4().hex}"


def _text(events: Iterable[AgentEvent]) -> str:
    return "".join(event.text for event in events)
