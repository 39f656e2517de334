from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator, SimpleApp
from agentdouble.errors import SettingsError
from agentdouble.runtimes import definition
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
