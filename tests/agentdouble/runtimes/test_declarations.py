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
    """Return what is said of tables that are refused."""
    with pytest.raises(SettingsError) as caught:
        definition.read_all(tables, taken_names)
    assert str(caught.value).startswith(f"The setting {caught.value.key}")
    return str(caught.value)


def test_a_command_is_words_or_a_line(tmp_path: Path) -> None:
    """A line is split as a shell does it; nothing else of a shell is in it."""
    folder = {"directory": str(tmp_path)}

    words, line = definition.read_all(
        [
            {"name": "a", "command": ["serve", "--now", "a b"], **folder},
            {"name": "b", **COMMAND, **folder},
        ]
    )

    assert ("serve", "--now", "a b") == words.command == line.command


def test_the_paths_of_a_file_are_seen_from_where_it_is(tmp_path: Path) -> None:
    """Wherever the double is started; a link to an interpreter is not followed."""
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
def test_a_wrong_table_is_told_by_its_key(table: dict[str, Any], reason: str) -> None:
    """Which key of which table, what is wrong with it, and what it should be."""
    assert reason in refusal(table)


def test_an_application_of_the_double_keeps_its_place() -> None:
    """What answers at /runtimes/<name> already leaves no place for a runtime of that name."""
    with pytest.raises(SettingsError, match=r"itself answers at /runtimes/second\."):
        Emulator(SimpleApp("first"), SimpleApp("second"), runtimes=[{"name": "second", **COMMAND}])
