from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http, text


def read(double: Emulator, **query: Any) -> Any:
    return http.get(f"{double.url}/_emulator/journal", params=query).json()


def test_the_journal_is_read_page_by_page(double: Emulator) -> None:
    for _ in range(5):
        http.get(f"{double.url}/ping")

    first = read(double, limit=3)
    second = read(double, limit=3, after=first["last"])

    assert [(3, True), (2, False)] == [(len(p["entries"]), p["more"]) for p in (first, second)]
    ids = [entry["id"] for page in (first, second) for entry in page["entries"]]
    assert ids == sorted(set(ids))


def test_an_entry_by_id_is_complete(double: Emulator) -> None:
    """The list leaves out bodies by default."""
    text(double, "print('said')")
    (short,) = read(double)["entries"]

    entry = http.get(f"{double.url}/_emulator/journal/{short['id']}").json()

    assert "response_body" not in short
    assert "said" in entry["response_body"]
    assert [entry] == read(double, bodies="true")["entries"]
    assert short == {name: entry[name] for name in short}


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"method": "get"}, 2),
        ({"method": "POST"}, 1),
        ({"path": "/ping"}, 1),
        ({"status": "404"}, 1),
        ({"status": "200", "method": "POST"}, 1),
        ({"action": "InvokeTool"}, 1),
        ({"unknown": "U-SIGNING"}, 1),
        ({"unread": "Nothing"}, 0),
        ({"fault": "none"}, 0),
    ],
    ids=str,
)
def test_filters_select_entries(double: Emulator, query: dict[str, str], count: int) -> None:
    """They are combined."""
    http.get(f"{double.url}/ping")
    http.get(f"{double.url}/nowhere")
    text(double, "1")

    assert count == len(read(double, **query)["entries"])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limt": "1"}, "Did you mean 'limit'?"),
        ({"nothing": "1"}, "It has after, limit, bodies, method"),
        ({"limit": "-1"}, "limit must be a whole number"),
        ({"after": "9" * 5000}, "after must be a whole number"),
        ({"bodies": "yes"}, "bodies must be true or false"),
    ],
    ids=str,
)
def test_an_invalid_query_is_refused(double: Emulator, query: dict[str, str], message: str) -> None:
    """The error lists the valid parameters."""
    answer = http.get(f"{double.url}/_emulator/journal", params=query)

    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "api_key",
        "apiKey",
        "x-api-key",
        "access_token",
        "accessToken",
        "token",
        "client_secret",
    ],
)
def test_a_secret_in_a_query_is_hidden(
    double: Emulator, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Parameters are recognised by name, in the journal and the log."""
    with caplog.at_level("INFO", "agentdouble.journal.entries"):
        http.get(f"{double.url}/ping", params={name: "s3cret", "NextToken": "place"})

    (entry,) = read(double, bodies="true")["entries"]
    assert "s3cret" not in str(entry)
    assert "NextToken=place" in entry["url"]
    assert not [
        log
        for log in caplog.records
        if log.name == "agentdouble.journal.entries" and "s3cret" in log.getMessage()
    ]
