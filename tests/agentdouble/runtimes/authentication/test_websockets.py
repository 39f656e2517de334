from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from agentdouble import Emulator
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.runtimes.authentication.conftest import KEYS
from tests.agentdouble.runtimes.programs import table

pytestmark = pytest.mark.libraries


@pytest.fixture(scope="module")
def conversing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A double with a runtime that speaks over websockets, for bearers of keys in the query."""
    directory = tmp_path_factory.mktemp("conversing")
    authorizer = {"keys": KEYS, "location": "Query", "name": "key"}
    with Emulator(
        runtimes=[{**table("ws", "conversing.py", directory), "authorizer": authorizer}]
    ) as double:
        yield double


def opened(double: Emulator, path: str, **headers: str) -> ClientConnection:
    url = f"ws{double.url.removeprefix('http')}/runtimes/ws{path}"
    return connect(url, proxy=None, open_timeout=TIMEOUT_S, additional_headers=headers)


def test_a_websocket_is_opened_by_a_key(conversing: Emulator) -> None:
    """As anything else is: the application knows whose it is, and not the key."""
    forged = {"X_Agentdouble_Identity_Subject": "root"}
    with opened(conversing, "/seen;?a=1&key=key-of-ann", **forged) as caller:
        asked = json.loads(caller.recv(TIMEOUT_S))

    assert "/seen;?a=1" == asked["path"]
    assert ["x-agentdouble-identity-subject", "ann"] in asked["headers"]
    assert "root" not in str(asked)


def test_a_websocket_without_a_key_is_refused(conversing: Emulator) -> None:
    """Nor is one opened for another's session, or for another's user."""
    alive = {"session_id": "w1"}
    with (
        opened(conversing, "/seen?key=key-of-ann", **alive),
        opened(conversing, "/run_live?key=key-of-ann&user_id=u9"),
    ):
        pass
    paths = (
        "/seen",
        "/seen?key=wrong",
        "/seen?key=key-of-bob",
        "/run_live?key=key-of-bob&userId=u9",
    )
    statuses = []
    for path in paths:
        with pytest.raises(InvalidStatus) as refused:
            opened(conversing, path, **alive)
        statuses.append(refused.value.response.status_code)

    assert [401, 401, 404, 404] == statuses
