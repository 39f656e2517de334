from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from doublecheck import Credentials, Secret
from doublecheck.errors import ConfigurationError, TargetError
from doublecheck.target import config_files
from doublecheck.target.conversions import target_of_plan
from doublecheck.target.plan import Plan, Sources, described, plan

pytestmark = pytest.mark.smoke

PROJECT = """
[tool.doublecheck.targets.staging]
url = "https://project.example/"
tool_id = "from the project"
offers = ["application", "mcp"]
api_key_env = "STAGING_KEY"
ca_file = "ca.pem"
[tool.doublecheck.targets.shared]
kind = "double"
url = "http://127.0.0.1:1"
"""
TABLE = "pyproject.toml [tool.doublecheck.targets.staging]"


def planned(
    environ: Mapping[str, str] | None = None, project: Path | None = None, **options: Any
) -> Plan:
    return plan(Sources(options, environ or {}, project))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return written(tmp_path, PROJECT)


def written(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def test_without_options_the_target_is_a_double_in_this_process() -> None:
    resolved = planned()

    assert ("double", "double", True) == (resolved.name, resolved.kind, resolved.in_process)


def test_options_override_the_project_and_the_environment(project: Path) -> None:
    """Each key is resolved separately."""
    environ = {"PLATFORM_TOOL_ID": "from the environment", "PLATFORM_TOOL_REGION": "eu-1"}

    resolved = planned(environ, project, target="staging", url="https://option.example")

    sources = {key: fact.source.rpartition("/")[2] for key, fact in resolved.facts.items()}
    assert {
        "url": "--platform-url",
        "tool_id": f"{TABLE} tool_id",
        "offers": f"{TABLE} offers",
        "api_key_env": f"{TABLE} api_key_env",
        "ca_file": f"{TABLE} ca_file",
        "region": "PLATFORM_TOOL_REGION",
    } == sources
    assert ("https://option.example", "eu-1") == (resolved.value("url"), resolved.value("region"))


def test_a_target_is_made_from_its_plan(project: Path) -> None:
    """Secrets come from the environment."""
    environ = {
        "PLATFORM_ACCESS_KEY": "AK",
        "PLATFORM_SECRET_KEY": "SK",
        "STAGING_KEY": "KEY",
        "DOUBLECHECK_MCP_API_KEY": "MCP",
        "DOUBLECHECK_ALLOW_WRITES": "yes",
        "PLATFORM_TOOL_HOST": "tools.example",
    }

    chosen = target_of_plan(planned(environ, project, target="staging"))

    assert ("staging", "live", True) == (chosen.name, chosen.kind, chosen.allow_writes)
    assert {"https://project.example"} == chosen.addresses
    assert frozenset({"application", "mcp"}) == chosen.offered
    assert str(project.parent / "ca.pem") == chosen.ca_file
    assert Credentials("AK", "SK") == chosen.credentials
    assert (Secret("KEY"), Secret("MCP")) == (chosen.key_of("a2a"), chosen.key_of("mcp"))


def test_a_file_may_name_a_variable_for_each_key(tmp_path: Path) -> None:
    """These override the usual ones; one that is not set is an error."""
    table = """[tool.doublecheck.targets.mine]
        url = "https://a"
        access_key_env = "MY_ACCESS"
        secret_key_env = "MY_SECRET"
        api_key_env = { a2a = "MY_A2A" }
    """
    named = {"MY_ACCESS": "AK", "MY_SECRET": "SK", "MY_A2A": "A2A", "DOUBLECHECK_API_KEY": "K"}
    environ = {"PLATFORM_ACCESS_KEY": "other", "PLATFORM_SECRET_KEY": "other", **named}
    resolved = planned(environ, written(tmp_path, table), target="mine")

    target = target_of_plan(resolved)

    assert Credentials("AK", "SK") == target.credentials
    assert (Secret("K"), Secret("A2A")) == (target.key_of("mcp"), target.key_of("a2a"))
    with pytest.raises(ConfigurationError, match="MY_ACCESS, which is not set"):
        target_of_plan(dataclasses.replace(resolved, variables={}))


def test_environment_addresses_apply_only_to_the_environment_url(project: Path) -> None:
    """With another URL, requests would reach the wrong platform."""
    environ = {"DOUBLECHECK_URL": "https://b", "DOUBLECHECK_CONTROL_PLANE": "https://tools.b"}
    chosen = {"DOUBLECHECK_TARGET": "staging", **environ}

    complete, other, named, by_variable = (
        planned(environ, target="live"),
        planned(environ, target="live", url="https://a"),
        planned(environ, project, target="staging"),
        planned(chosen, project),
    )

    assert [
        ("https://b", "https://tools.b", []),
        ("https://a", None, ["DOUBLECHECK_CONTROL_PLANE"]),
        ("https://project.example", None, ["DOUBLECHECK_CONTROL_PLANE"]),
        ("https://b", "https://tools.b", []),
    ] == [
        (resolved.value("url"), resolved.value("control_plane"), resolved.unused)
        for resolved in (complete, other, named, by_variable)
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "live"}, "--platform-target live needs a running platform: give its address"),
        ({"reference_app": True}, "--platform-reference-app needs a running platform"),
        ({"target": "stagin"}, "Unknown target 'stagin'; .* Did you mean staging?"),
        ({"url": "foo"}, "--platform-url must be an address: .*, not 'foo'"),
        ({"offers": "aplication"}, "surfaces among .*did you mean application"),
        ({"examples": "0"}, "--platform-examples must be a whole number from 1"),
        ({"level": "most"}, "--platform-level must be full or quick or smoke, not 'most'"),
    ],
)
def test_wrong_options_are_errors(project: Path, options: dict[str, Any], message: str) -> None:
    """The error names the option and the remedy."""
    with pytest.raises(TargetError, match=message):
        planned({}, project, **options)


def test_a_wrong_variable_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="DOUBLECHECK_ALLOW_WRITES must be true or false"):
        planned({"DOUBLECHECK_ALLOW_WRITES": "perhaps"})


def test_a_file_cannot_select_a_live_platform(tmp_path: Path) -> None:
    """It can select a double."""
    live = written(tmp_path, f'[tool.doublecheck]\ntarget = "staging"\n{PROJECT}')
    with pytest.raises(TargetError, match=r"selects a live platform, which a file alone must not"):
        planned({}, live)
    assert "live" == planned({"DOUBLECHECK_TARGET": "staging"}, live).kind

    double = written(tmp_path, f'[tool.doublecheck]\ntarget = "shared"\n{PROJECT}')
    assert ("shared", "double") == (planned({}, double).name, planned({}, double).kind)


def test_a_plan_is_shown_with_its_sources(project: Path) -> None:
    """Secrets appear only as the names of their variables."""
    environ = {
        "STAGING_KEY": "TOP-SECRET",
        "PLATFORM_SECRET_KEY": "TOP-SECRET",
        "DOUBLECHECK_MCP": "https://b",
    }
    resolved = planned(environ, project, target="staging", offers="mcp")

    lines = [line.replace(f"{project.parent}/", "") for line in described(resolved)]

    assert [
        f"platform: staging, live, at https://project.example ({TABLE} url)",
        f"  tool id: from the project ({TABLE} tool_id)",
        "  offers: mcp (--platform-offers)",
        f"  api key env: STAGING_KEY ({TABLE} api_key_env)",
        f"  ca file: ca.pem ({TABLE} ca_file)",
        "  secrets: PLATFORM_SECRET_KEY",
        "  not used: DOUBLECHECK_MCP (not used for this platform; set DOUBLECHECK_URL to use them)",
    ] == lines


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", "[tool.other]\ndoublecheck = 1\n"])
def test_the_project_table_is_optional(tmp_path: Path, text: str) -> None:
    """So is the file."""
    assert config_files.read_project(tmp_path / "pyproject.toml") is None
    assert config_files.read_project(written(tmp_path, text)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("url = 'http://a'", "[tool.doublecheck] has two keys: target, the name of a target, and"),
        ("targets.a = 1", "[tool.doublecheck.targets.a] must be a table."),
        ("targets.a.ofers = ['a2a']", "unknown key ofers. Did you mean offers?"),
        ("targets.a.region = 3", "region must be text, not 3."),
        (
            "targets.a.url = 'http://user:TOP-SECRET@a'",
            "https://host, not the given value (str, with a user in it).",
        ),
        ("targets.a.allow_writes = 1", "allow_writes must be true or false, not 1."),
        ("targets.a.api_key = 'TOP-SECRET'", "api_key is a secret and must not be in a file"),
        (
            "targets.a.api_key_env = 'TOP-SECRET'",
            "api_key_env must be the name of the environment variable that holds it, not 'str'.",
        ),
    ],
)
def test_an_invalid_entry_is_reported_with_file_table_and_key(
    tmp_path: Path, text: str, message: str
) -> None:
    """The error says what was expected and never shows a secret."""
    path = written(tmp_path, f"[tool.doublecheck]\n{text}")

    with pytest.raises(ConfigurationError) as error:
        config_files.read_project(path)

    assert str(path) == error.value.source
    assert str(error.value).startswith(f"{path} [tool.doublecheck")
    assert message in str(error.value)
    assert "TOP-SECRET" not in str(error.value)


@pytest.mark.parametrize(
    "content",
    [
        b"doublecheck = ",
        b"doublecheck = '\xff'",
        b"doublecheck = " + b"[" * 5000,
        b"doublecheck = " + b"9" * 5000,
    ],
    ids=len,
)
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"pyproject.toml cannot be read: "):
        config_files.read_project(path)
