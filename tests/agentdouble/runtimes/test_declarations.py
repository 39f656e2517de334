from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator, SimpleApp
from agentdouble.errors import SettingsError
from agentdouble.runtimes import definition
from agentdouble.runtimes.authentication.authorizers import Authorizer
from agentdouble.settings import Settings

COMMAND = {"command": "serve --now 'a b'"}


def refusal(*tables: dict[str, Any], taken_names: tuple[str, ...] = ()) -> str:
    """Return the error for invalid tables."""
    with pytest.raises(SettingsError) as caught:
        definition.read_all(tables, taken_names)
    assert str(caught.value).startswith(f"The setting {caught.value.key}")
    return str(caught.value)


def test_command_may_be_a_list_or_a_line(tmp_path: Path) -> None:
    """A line is split like a shell does; no other shell syntax is supported."""
    folder = {"directory": str(tmp_path)}

    words, line = definition.read_all(
        [
            {"name": "a", "command": ["serve", "--now", "a b"], **folder},
            {"name": "b", **COMMAND, **folder},
        ]
    )

    assert ("serve", "--now", "a b") == words.command == line.command


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """Wherever the double starts; a link to an interpreter is not followed."""
    folder = tmp_path / "there"
    (folder / "app").mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    file = folder / "agentdouble.toml"
    table = '[[runtimes]]\nname = "{}"\napplication = "main:app"\n'
    file.write_text(
        table.format("inner")
        + 'directory = "app"\npython = "python"\n'
        + table.format("outer")
        + f'directory = "{tmp_path}"\n'
        + table.format("plain")
    )

    runtimes = definition.read_all(Settings.load(file).runtimes)

    assert [(folder / "app", folder / "python"), (tmp_path, None), (folder, None)] == [
        (runtime.directory, runtime.python) for runtime in runtimes
    ]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            {"name": "a", "max_instance": 3},
            (
                "runtimes.0.max_instance (of the runtime 'a') is wrong: there is no such key. "
                "Did you mean max_instances?"
            ),
        ),
        (COMMAND, "runtimes.0.name is wrong: Field required."),
        (
            {"name": "a"},
            (
                "runtimes.0 (of the runtime 'a') is wrong: it needs either an application "
                "(module:attribute or file.py:attribute) or a command that listens on $PORT."
            ),
        ),
        ({"name": "a", **COMMAND, "directory": "/nowhere"}, "there is no directory /nowhere."),
        ({"name": "a", **COMMAND, "python": "/nowhere"}, "there is no interpreter /nowhere; "),
        ({"name": "a", **COMMAND, "environment": {"PORT": "1"}}, "the double itself sets PORT."),
        ({"name": "a", **COMMAND, "environment": {"A": "\0"}}, "has a NUL character"),
        ({"name": "a", **COMMAND, "min_instances": 5}, "its max_instances is smaller than "),
    ],
)
def test_invalid_tables_are_refused_by_key(table: dict[str, Any], reason: str) -> None:
    """The error names the table and the key, and says what is wrong and what is valid."""
    assert reason in refusal(table)


def test_runtime_cannot_take_an_application_s_path() -> None:
    """An application at /runtimes/<name> excludes a runtime of that name."""
    with pytest.raises(SettingsError, match=r"itself answers at /runtimes/second\."):
        Emulator(SimpleApp("first"), SimpleApp("second"), runtimes=[{"name": "second", **COMMAND}])


DISCOVERY = "https://issuer.example/.well-known/openid-configuration"


def read(table: dict[str, Any]) -> Authorizer:
    """Return the authorizer of a runtime with this table."""
    read = definition.declare({"name": "one", "command": "true", "authorizer": table})
    assert read.authorizer
    return read.authorizer


def test_keys_have_names() -> None:
    """Callers are identified by them."""
    named = {"name": "billing", "secret": "two"}
    authorizer = read({"keys": ["one", named, "three"], "location": "Query", "name": "key"})

    assert [("default", "one"), ("billing", "two"), ("key-3", "three")] == [
        (key.name, key.secret) for key in authorizer.keys
    ]
    assert "two" not in repr(authorizer)


def test_audience_may_be_a_string_or_a_list() -> None:
    """As in a token."""
    table = {"discovery_url": DISCOVERY, "allowed_clients": ["client"]}

    assert [("api",), ("api",)] == [
        read({**table, "audience": audience}).audience for audience in ("api", ["api"])
    ]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "either keys or a discovery_url"),
        ({"keys": ["sesame"], "audience": "me"}, "belong to a discovery_url"),
        ({"keys": ["sesame open"]}, "should match pattern"),
        ({"keys": ["sesame"], "location": "Cookie"}, "'Header' or 'Query'"),
        ({"keys": ["sesame"], "name": "User_Id"}, "has its own use"),
        ({"discovery_url": "http://issuer.example/"}, "neither an https address"),
        ({"kyes": ["sesame"]}, "Did you mean keys?"),
    ],
)
def test_invalid_tables_are_refused_without_showing_keys(table: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(table)

    assert words in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_stored_authorizer_round_trips() -> None:
    """Keys included, so that callers are accepted after a restart."""
    authorizer = {"keys": ["one", {"name": "ann", "secret": "two"}]}
    table = {"name": "one", "command": ["true"], "authorizer": authorizer}
    definition_ = definition.declare(table)

    assert definition_ == definition.declare(definition_.table())
