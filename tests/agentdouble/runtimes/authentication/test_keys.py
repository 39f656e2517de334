from __future__ import annotations

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes.authentication.conftest import Caller, mirror


@pytest.mark.parametrize(
    ("runtime", "path", "headers"),
    [
        ("keyed", "/a", {"Authorization": "Bearer key-of-bob"}),
        ("queried", "/a?b=1&key=key-of-bob&c", {}),
        ("named", "/a", {"X-Secret-Word": "key-of-bob"}),
    ],
)
def test_key_authenticates_its_caller(
    double: Emulator, runtime: str, path: str, headers: dict[str, str]
) -> None:
    """By name; the gateway does not forward the key to the application."""
    received = Caller(double, runtime).echo(path, headers=headers)
    headers_received = dict(received["headers"])

    assert ("key", "bob") == (
        headers_received["x-agentdouble-identity-kind"],
        headers_received["x-agentdouble-identity-subject"],
    )
    assert "key-of-bob" not in str(received)
    assert ("/a?b=1&c" if runtime == "queried" else "/a") == received["path"]


@pytest.mark.parametrize(
    ("runtime", "path", "headers"),
    [
        ("keyed", "/a", {}),
        ("keyed", "/a", {"Authorization": "Bearer key-of-ann2"}),
        ("keyed", "/a", {"Authorization": "Basic key-of-ann"}),
        ("queried", "/a", {"Authorization": "Bearer key-of-ann"}),
        ("queried", "/a?key=key-of-ann&key=other", {}),
        ("named", "/a", {"X-Secret-Word": "Bearer key-of-ann"}),
        ("jwt", "/a", {"Authorization": "Bearer key-of-ann"}),
    ],
)
def test_requests_without_a_valid_key_are_refused(
    double: Emulator, runtime: str, path: str, headers: dict[str, str]
) -> None:
    """The error says what is required and shows no key."""
    answer = Caller(double, runtime).ask(path, headers=headers)

    assert 401 == answer.status_code
    assert f'realm="{runtime}"' in answer.headers["WWW-Authenticate"]
    assert "key-of-ann" not in answer.text


def test_open_runtime_accepts_anonymous_callers(double: Emulator) -> None:
    """Forged identity headers are dropped as well."""
    forged = {"X-Agentdouble-Identity-Subject": "root", "Authorization": "Bearer own"}
    headers_received = dict(Caller(double, "open").echo(headers=forged)["headers"])

    assert "Bearer own" == headers_received["authorization"]
    assert not [name for name in headers_received if "identity" in name]


def test_runtime_keys_replace_the_double_s_api_key() -> None:
    """Runtimes without keys, and unknown ones, require the double's."""
    tables = [mirror("open"), mirror("keyed", {"keys": ["own"]})]
    with Emulator(runtimes=tables, api_key="the-doubles") as double:
        statuses = [
            Caller(double, name).ask("/a", bearer).status_code
            for name in ("keyed", "open", "nobody")
            for bearer in ("own", "the-doubles")
        ]
        foreign = Caller(double, "keyed").ask(
            "/a", "own", headers={"Origin": "https://evil.example"}
        )

    assert [200, 401, 401, 200, 401, 404] == statuses
    assert 403 == foreign.status_code


def test_journal_shows_no_key(double: Emulator) -> None:
    """Wherever it was sent."""
    http.delete(f"{double.url}/_emulator/journal")
    Caller(double, "queried").echo("/a?key=key-of-ann&b=1")
    Caller(double, "named").echo("/a", headers={"X-Secret-Word": "key-of-ann"})
    journal = http.get(f"{double.url}/_emulator/journal?bodies=true")

    assert ["?key=***&b=1", ""] == [
        entry["url"].partition("/a")[2] for entry in journal.json()["entries"]
    ]
    assert "***" == journal.json()["entries"][1]["request_headers"]["x-secret-word"]
    assert "key-of-ann" not in journal.text


def test_settings_show_no_key(double: Emulator) -> None:
    """Nor do the definitions or the double's list of runtimes."""
    (version,) = double.runtimes.versions("keyed")
    runtimes = http.get(f"{double.url}/_emulator/runtimes").text

    assert "key-of-ann" not in f"{double.settings!r} {version!r} {runtimes}"
