from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from doublecheck import Credentials, Secret
from doublecheck.errors import ConfigurationError, TargetError
from doublecheck.target import from_plan
from doublecheck.target.plan import Plan, Sources, plan

pytestmark = pytest.mark.smoke

PROJECT = """
[tool.doublecheck]
region = "from the project"
[tool.doublecheck.targets.staging]
url = "https://project.example"
tool_id = "from the project"
region = "from the project"
api_key_env = "STAGING_KEY"
"""
FILE = """
[targets.staging]
url = "https://file.example"
tool_id = "from the file"
region = "from the file"
mcp = "https://mcp.file.example"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "pyproject.toml"
    path.write_text(PROJECT)
    return path


def said(
    environ: Mapping[str, str] | None = None, project: Path | None = None, **options: Any
) -> Sources:
    return Sources(options, environ or {}, project)


def sources(made: Plan) -> dict[str, str]:
    """Return who said what, by the last part of a path."""
    return {key: fact.source.rpartition("/")[2] for key, fact in made.facts.items()}


def in_file(folder: Path, text: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / "doublecheck.toml"
    path.write_text(text)
    return str(path)


def test_a_double_in_this_process_is_what_nobody_speaks_of() -> None:
    """It needs no address."""
    made = plan(said())

    assert ("double", "double", True) == (made.name, made.kind, made.in_process)


def test_the_nearer_has_the_last_word(tmp_path: Path, project: Path) -> None:
    """Command line, project, file, environment: in that order, each key by itself."""
    made = plan(
        said(
            {"PLATFORM_TOOL_ID": "from the environment", "STAGING_KEY": "KEY"},
            project,
            target="staging",
            config=in_file(tmp_path, FILE),
            url="https://option.example",
        )
    )

    table = "pyproject.toml [tool.doublecheck.targets.staging]"
    assert {
        "url": "--platform-url",
        "tool_id": f"{table} tool_id",
        "region": f"{table} region",
        "api_key_env": f"{table} api_key_env",
        "mcp": "doublecheck.toml [targets.staging] mcp",
    } == sources(made)
    assert "https://option.example" == made.value("url")


def test_a_target_is_made_of_its_plan(project: Path) -> None:
    """Secrets come from the environment; what is not said has its default."""
    environ = {
        "PLATFORM_ACCESS_KEY": "AK",
        "PLATFORM_SECRET_KEY": "SK",
        "STAGING_KEY": "KEY",
        "DOUBLECHECK_MCP_API_KEY": "MCP",
        "DOUBLECHECK_OFFERS": "application, mcp",
        "DOUBLECHECK_ALLOW_WRITES": "yes",
        "PLATFORM_TOOL_HOST": "tools.example",
    }

    made = from_plan.target(plan(said(environ, project, target="staging")), environ)

    assert ("staging", "live", True) == (made.name, made.kind, made.allow_writes)
    assert {"https://project.example"} == made.addresses
    assert frozenset({"application", "mcp"}) == made.offered
    assert Credentials("AK", "SK") == made.credentials
    assert (Secret("KEY"), Secret("MCP")) == (made.key_of("a2a"), made.key_of("mcp"))


def test_a_file_may_name_a_variable_for_each_key(tmp_path: Path) -> None:
    """They come before the usual ones, which may hold the keys of another platform."""
    text = """
        url = "https://a"
        access_key_env = "MY_ACCESS"
        secret_key_env = "MY_SECRET"
        api_key_env = { a2a = "MY_A2A" }
    """
    mine = {"MY_ACCESS": "AK", "MY_SECRET": "SK", "MY_A2A": "A2A", "DOUBLECHECK_API_KEY": "K"}
    environ = {"PLATFORM_ACCESS_KEY": "other", "PLATFORM_SECRET_KEY": "other", **mine}

    made = from_plan.target(
        plan(said(environ, target="live", config=in_file(tmp_path, text))), environ
    )

    assert Credentials("AK", "SK") == made.credentials
    assert (Secret("K"), Secret("A2A")) == (made.key_of("mcp"), made.key_of("a2a"))


def test_a_variable_that_is_named_and_not_set_is_an_error(project: Path) -> None:
    """What was meant to be shown would silently not be."""
    made = plan(said({}, project, target="staging"))

    with pytest.raises(ConfigurationError, match=r"staging\] api_key_env names .* STAGING_KEY"):
        from_plan.target(made, {})


def test_a_table_is_of_the_kind_that_it_tells(tmp_path: Path) -> None:
    """An address in a file is a live platform's, and no concern of who asks for a double."""
    config = in_file(tmp_path, "url = 'https://a'\n")
    running = in_file(tmp_path / "running", "url = 'http://127.0.0.1:1'\nkind = 'double'\n")

    assert plan(said(config=config)).in_process
    assert "https://a" == plan(said(config=config, target="live")).value("url")
    assert "http://127.0.0.1:1" == plan(said(config=running)).value("url")


@pytest.mark.parametrize("kind", ["double", "live"])
def test_a_platform_is_its_own_control_plane(kind: str) -> None:
    """Unless somebody says it of this platform: a variable of another one does not count."""
    environ = {"PLATFORM_TOOL_HOST": "tools.example"}
    options = {"url": "http://127.0.0.1:1", "target": kind}
    tools = "https://told.example"

    assert plan(said(environ, **options)).value("control_plane") is None
    assert tools == plan(said(environ, **options, control_plane=tools)).value("control_plane")


def test_the_control_plane_of_a_target_is_its_own(tmp_path: Path) -> None:
    """Nothing in the environment comes before it; the variables of the harness are told."""
    table = (
        "[targets.staging]\nurl = 'https://a'\ncontrol_plane = 'https://tools.a'\ntool_id = 't-a'"
    )
    environ = {
        "PLATFORM_TOOL_HOST": "b",
        "PLATFORM_TOOL_ID": "t-b",
        "DOUBLECHECK_URL": "https://b",
        "DOUBLECHECK_CONTROL_PLANE": "https://tools.b",
        "DOUBLECHECK_MCP": "https://mcp.b",
    }

    made = plan(said(environ, target="staging", config=in_file(tmp_path, table)))

    told = [made.value(key) for key in ("url", "control_plane", "tool_id", "mcp")]
    assert ["https://a", "https://tools.a", "t-a", None] == told
    assert ["DOUBLECHECK_MCP"] == made.unused
    assert (
        "  not used: DOUBLECHECK_MCP (not of this platform, as DOUBLECHECK_URL would say)"
        == from_plan.lines(made, environ)[-1]
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("https://b", "https://tools.b")),
        ({"url": "https://a"}, ("https://a", None)),
        (
            {"url": "https://a", "control_plane": "https://tools.a"},
            ("https://a", "https://tools.a"),
        ),
        ({"control_plane": "https://tools.a"}, ("https://b", "https://tools.a")),
        ({"target": "double", "emulator_command": "x"}, (None, None)),
    ],
)
def test_the_addresses_in_the_environment_go_with_the_url_there(
    options: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    """Beside another URL they would send requests to a platform that nobody meant."""
    environ = {"DOUBLECHECK_URL": "https://b", "DOUBLECHECK_CONTROL_PLANE": "https://tools.b"}

    made = plan(said(environ, **{"target": "live", **options}))

    assert expected == (made.value("url"), made.value("control_plane"))


def test_a_target_that_the_environment_chooses_is_changed_by_it(tmp_path: Path) -> None:
    """A target that the command line names is not."""
    environ = {"DOUBLECHECK_TARGET": "staging", "DOUBLECHECK_URL": "https://b"}
    config = in_file(tmp_path, FILE)

    chosen, named = (
        plan(said(environ, config=config)),
        said(environ, config=config, target="staging"),
    )

    assert ("https://b", "https://file.example") == (chosen.value("url"), plan(named).value("url"))


def test_an_address_replaces_a_command(tmp_path: Path) -> None:
    """They say the same thing, so the nearer of the two counts, and both at once are a slip."""
    config = in_file(tmp_path, "emulator_command = 'agentdouble serve'")

    made = plan(said(config=config, url="http://127.0.0.1:1"))

    assert ("http://127.0.0.1:1", None) == (made.value("url"), made.value("emulator_command"))
    assert not plan(said(config=config)).in_process
    with pytest.raises(TargetError, match="not both"):
        plan(said(url="http://a", emulator_command="agentdouble serve"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"target": "live"}, "--platform-target live needs a running platform: give its address"),
        ({"reference_app": True}, "--platform-reference-app needs a running platform"),
        ({"region": "r"}, "--platform-region needs a running platform"),
        ({"target": "stagin"}, "no target 'stagin'; .* Did you mean staging?"),
        ({"target": "live", "url": "http://a", "emulator_command": "x"}, "not both"),
        ({"target": "live", "emulator_command": "x"}, "starts a double, but .* is a live"),
        ({"url": "foo"}, "--platform-url must be an address: .*, not 'foo'"),
        ({"offers": "foo"}, "--platform-offers must be surfaces out of"),
    ],
)
def test_what_cannot_be_meant_is_an_error(
    project: Path, options: dict[str, Any], told: str
) -> None:
    """It names the option and what to do."""
    with pytest.raises(TargetError, match=told):
        plan(said({}, project, **options))


def test_the_environment_is_read_as_strictly() -> None:
    """The error names the variable."""
    with pytest.raises(ConfigurationError, match="DOUBLECHECK_ALLOW_WRITES must be true or false"):
        plan(said({"DOUBLECHECK_ALLOW_WRITES": "perhaps"}))


def test_no_file_chooses_a_live_platform(tmp_path: Path) -> None:
    """Who runs the tests does; a double may be chosen by a file."""
    live = in_file(tmp_path, "target = 'a'\n[targets.a]\nurl = 'https://a'")
    with pytest.raises(
        TargetError, match=r"toml target selects a live platform, which a file must not"
    ):
        plan(said(config=live))
    assert "live" == plan(said({"DOUBLECHECK_TARGET": "a"}, config=live)).kind

    double = in_file(tmp_path, "target = 'a'\n[targets.a]\nemulator_command = 'x'")
    assert ("a", "double") == (plan(said(config=double)).name, plan(said(config=double)).kind)


def test_a_plan_shows_what_where_and_who_said_so(project: Path) -> None:
    """Secrets by the names of their variables alone."""
    environ = {"STAGING_KEY": "TOP-SECRET", "PLATFORM_SECRET_KEY": "TOP-SECRET"}
    made = plan(said(environ, project, target="staging", mcp="http://m", offers="mcp"))

    lines = [line.replace(f"{project.parent}/", "") for line in from_plan.lines(made, environ)]

    table = "pyproject.toml [tool.doublecheck.targets.staging]"
    assert [
        f"platform: staging, live, at https://project.example ({table} url)",
        "  offers: mcp (--platform-offers)",
        f"  tool id: from the project ({table} tool_id)",
        f"  region: from the project ({table} region)",
        f"  api key env: STAGING_KEY ({table} api_key_env)",
        "  mcp: http://m (--platform-mcp)",
        "  secrets: PLATFORM_SECRET_KEY",
    ] == lines


def test_a_plan_shows_what_is_offered_by_default() -> None:
    """A live platform has what every deployment has."""
    lines = from_plan.lines(plan(said(target="live", url="https://a")), {})

    assert [
        "platform: live at https://a (--platform-url)",
        "  offers: all but library, runtimes, services (by default)",
    ] == lines
