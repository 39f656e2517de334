from __future__ import annotations

import os
from pathlib import Path

import pytest

from doublecheck.errors import ConfigurationError
from doublecheck.target import config_files

pytestmark = pytest.mark.smoke


def refused(path: Path, *, project: bool = False) -> str:
    """Return what a file is refused with, without its folder."""
    with pytest.raises(ConfigurationError) as error:
        config_files.read_project(path) if project else config_files.read(path)
    assert str(path) == error.value.source
    return str(error.value).replace(f"{path.parent}/", "")


def written(folder: Path, text: str, name: str = "targets.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_names_targets(tmp_path: Path) -> None:
    """Each has a table; what stands outside of them is of a target without a name."""
    read = config_files.read(
        written(
            tmp_path,
            """
            target = "local"
            region = "eu-1"
            [targets.local]
            emulator_command = "agentdouble serve --port 0"
            [targets.staging]
            url = "https://staging.example.com/"
            offers = ["application", "api_server"]
            api_key_env = { mcp = "MCP_KEY" }
            reference_app = true
            ca_file = "ca.pem"
            """,
        )
    )

    assert ("local", {"region": "eu-1"}) == (read.chosen, read.own.values)
    assert {"emulator_command": ("agentdouble", "serve", "--port", "0")} == read.targets[
        "local"
    ].values
    assert {
        "url": "https://staging.example.com",
        "offers": frozenset({"application", "api_server"}),
        "api_key_env": {"mcp": "MCP_KEY"},
        "reference_app": True,
        "ca_file": str(tmp_path / "ca.pem"),
    } == read.targets["staging"].values


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", "[tool.other]\ndoublecheck = 1\n"])
def test_a_project_need_not_say_anything(tmp_path: Path, text: str) -> None:
    """Nor need there be one."""
    assert config_files.read_project(tmp_path / "pyproject.toml") is None
    assert config_files.read_project(written(tmp_path, text, "pyproject.toml")) is None


def test_a_project_says_it_in_its_tool_table(tmp_path: Path) -> None:
    """Errors name file and table."""
    project = written(tmp_path, "[tool.doublecheck]\nurll = 'x'\n", "pyproject.toml")

    expected = "pyproject.toml [tool.doublecheck]: there is no key urll. Did you mean url?"
    assert expected == refused(project, project=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[targets.staging]\nofers = ['a2a']",
            "targets.toml [targets.staging]: there is no key ofers. Did you mean offers?",
        ),
        ("target = 3", "targets.toml: target must be the name of a target, not 3."),
        ("targets = []", "targets.toml: targets must be a table, not []."),
        ("targets.a = 1", "targets.toml: targets.a must be a table, not 1."),
        ("region = 3", "targets.toml: region must be text, not 3."),
        ("region = ''", "targets.toml: region must be text, not ''."),
        ("mcp = []", "targets.toml: mcp must be an address as text, not []."),
        (
            "url = 'foo'",
            "targets.toml: url must be an address: http://host[:port] or https://host, not 'foo'.",
        ),
        (
            "url = 'http://user:TOP-SECRET@a'",
            (
                "targets.toml: url must be an address: http://host[:port] or https://host, "
                "not what stands there (str, with a user in it)."
            ),
        ),
        ("allow_writes = 1", "targets.toml: allow_writes must be true or false, not 1."),
        ("kind = 'dead'", "targets.toml: kind must be double or live, not 'dead'."),
        (
            "emulator_command = ['a', 1]",
            (
                "targets.toml: emulator_command must be a command: text, or a list of words, "
                "not ['a', 1]."
            ),
        ),
        (
            "emulator_command = 'a \"'",
            (
                "targets.toml: emulator_command must be a command: text, or a list of words "
                "(No closing quotation), not 'a \"'."
            ),
        ),
        (
            "[targets.live]\nurl = 'http://a'",
            (
                "targets.toml [targets.live]: the name live is taken. What is said of it without a "
                "name of its own stands in targets.toml."
            ),
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    """File, table and key; what was expected and what stands there, or the nearest key."""
    assert expected == refused(written(tmp_path, text))


def test_a_surface_that_does_not_exist_is_told_with_the_nearest(tmp_path: Path) -> None:
    """And with all that there are."""
    told = refused(written(tmp_path, "offers = ['aplication']"))

    assert "application, control_plane, library" in told
    assert "(did you mean application?), not ['aplication']." in told


@pytest.mark.parametrize("key", ["api_key", "access_key", "secret_key", "restricted_secret_key"])
def test_a_file_holds_no_secret(tmp_path: Path, key: str) -> None:
    """It names the variable that does; the secret is not repeated."""
    told = refused(written(tmp_path, f"{key} = 'TOP-SECRET'"))

    assert told.startswith(f"targets.toml: {key} does not belong in a file")
    assert f'{key}_env = "THE_VARIABLE"' in told
    assert "TOP-SECRET" not in told


@pytest.mark.parametrize("value", ["'TOP-SECRET'", "['TOP-SECRET']", "{mcp = 'TOP-SECRET'}"])
def test_a_secret_in_place_of_its_variable_is_not_repeated(tmp_path: Path, value: str) -> None:
    """Its type is all that is told."""
    told = refused(written(tmp_path, f"api_key_env = {value}"))

    assert "api_key_env must be the name of the environment variable that holds it" in told
    assert "TOP-SECRET" not in told


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Missing, a folder, no TOML, no UTF-8, too large: each in a sentence."""
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"a = '\xff'")
    large = written(tmp_path, "#" * (config_files.SIZE_LIMIT + 1), "large.toml")
    deep = written(tmp_path, "a = " + "[" * 100_000, "deep.toml")

    os.mkfifo(tmp_path / "pipe.toml")

    assert "pipe.toml is no file but a pipe." == refused(tmp_path / "pipe.toml")
    assert "gone.toml cannot be read: No such file or directory." == refused(tmp_path / "gone.toml")
    assert f"{tmp_path.name} cannot be read: Is a directory." == refused(tmp_path)
    assert refused(written(tmp_path, "a = ")).startswith("targets.toml is not TOML: Invalid value")
    assert "binary.toml is not TOML, which is UTF-8: byte 5 is not." == refused(binary)
    assert "large.toml: larger than 1048576 bytes." == refused(large)
    assert refused(deep).startswith("deep.toml is")
