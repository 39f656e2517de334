from __future__ import annotations

import json
import threading

import pytest

from tests.agentdouble import mcp_wire
from tests.agentdouble.mcp_services.stdio.conftest import (
    KEY,
    Services,
    call,
    call_modern,
    processes,
    text,
)

pytestmark = pytest.mark.libraries

_LOG_LEVEL = "io.modelcontextprotocol/logLevel"


@pytest.fixture(scope="module")
def url(services: Services) -> str:
    return services.make("stateless", "modern")


def asked(tool: str, id_: int | str, **meta: object) -> dict[str, object]:
    """Return a call with an id and more in its ``_meta``."""
    found = mcp_wire.modern(tool, {"word": f"of {id_}"})
    found["id"] = id_
    found["params"]["_meta"] |= meta
    return found


def test_all_clients_share_a_process(url: str) -> None:
    """A request of this era says all that the server needs."""
    assert ["hé", "hé"] == [call_modern(url, "echo", word="hé") for _ in range(2)]
    assert 1 == len(processes("stateless"))


def test_equal_ids_and_tokens_of_clients_do_not_meet(url: str) -> None:
    """Each gets its own answer with its own id, and progress with its own token."""
    sent = asked("progress", "same", progressToken="token")
    answers = []

    def post() -> None:
        headers = mcp_wire.modern_headers(KEY, "progress")
        answers.append(mcp_wire.replies(mcp_wire.http.post(url, json=sent, headers=headers)))

    threads = [threading.Thread(target=post) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 5 == len(answers)
    for replies in answers:
        assert {"progressToken": "token", "progress": 1} == replies[0]["params"]
        assert ("same", "done") == (replies[-1]["id"], text(replies[-1]["result"]))


def test_log_messages_reach_the_only_request_that_wants_them(url: str) -> None:
    """They do not say whose they are; another client is in flight meanwhile."""
    silent = mcp_wire.modern("silent", {})
    with mcp_wire.waiting(url, silent, mcp_wire.modern_headers(KEY, "silent")):
        headers = mcp_wire.modern_headers(KEY, "log")
        wanted = asked("log", 1, **{_LOG_LEVEL: "info"})
        answer = mcp_wire.http.post(url, json=wanted, headers=headers)

    log, result = mcp_wire.replies(answer)

    assert "of 1" == log["params"]["data"]
    assert "done" == text(result["result"])


def test_a_client_that_leaves_cancels_its_request(services: Services) -> None:
    """The server is told, by the id that it knows."""
    url = services.make("leaving", "modern")
    with mcp_wire.waiting(
        url, mcp_wire.modern("silent", {}), mcp_wire.modern_headers(KEY, "silent")
    ):
        while json.loads(call_modern(url, "remembered", what="silent")) is None:
            pass

    while (number := json.loads(call_modern(url, "remembered", what="cancelled"))) is None:
        pass
    assert isinstance(number, int)


def test_a_server_of_the_handshake_era_says_so_and_keeps_its_process(services: Services) -> None:
    """A client of both eras asks, is refused, and opens a session: in the process that it asked."""
    url = services.make("older")
    about = mcp_wire.modern("", {})["params"]["_meta"]
    headers = {**mcp_wire.headers(KEY), "Mcp-Protocol-Version": mcp_wire.MODERN}
    answer = mcp_wire.http.post(
        url,
        json=mcp_wire.message("server/discover", {"_meta": about}),
        headers={**headers, "Mcp-Method": "server/discover"},
    )
    assert (404, -32601) == (answer.status_code, answer.json()["error"]["code"])
    (process,) = processes("older")

    session = mcp_wire.open_session(url, KEY)

    assert [process] == processes("older")
    assert "hé" == call(url, session, "echo", word="hé")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Mcp-Method": "tools/list"}, 400),
        ({"Mcp-Name": "other"}, 400),
        ({"Mcp-Protocol-Version": "2099-01-01"}, 400),
        ({"Accept": "text/html"}, 406),
    ],
)
def test_headers_that_do_not_fit_are_refused(url: str, change: dict[str, str], status: int) -> None:
    """As a server behind HTTP does, which a gateway in front of it relies on."""
    headers = {**mcp_wire.modern_headers(KEY, "echo"), **change}
    sent = mcp_wire.modern("echo", {"word": "x"})

    assert status == mcp_wire.http.post(url, json=sent, headers=headers).status_code


def test_what_is_no_request_is_answered_without_the_server(url: str) -> None:
    """A notification is received; a batch and what is no JSON are refused."""
    headers = mcp_wire.modern_headers(KEY, "echo")
    note = {"jsonrpc": "2.0", "method": "notifications/anything"}

    statuses = [
        mcp_wire.http.post(url, content=body, headers=headers).status_code
        for body in (json.dumps(note), "[]", "no", '{"jsonrpc": "2.0", "id": null, "method": "x"}')
    ]

    assert [202, 400, 400, 400] == statuses
    assert 405 == mcp_wire.http.get(url, headers=headers).status_code
