from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path

import pytest
import typer

import doublecheck
from agentdouble.core import environment
from doublecheck import Credentials, Platform, Secret, Target
from doublecheck.cli import app
from doublecheck.errors import CredentialsMissingError, TargetError, UnreachableError
from doublecheck.target import config_files
from doublecheck.target.conversions import from_json, plan_of_target, target_of_plan, to_json
from doublecheck.target.fact import Fact
from doublecheck.target.facts import FACTS, OPTIONS, surface_of
from doublecheck.target.plan import Sources, plan
from doublecheck.target.target import is_loopback, named_url

pytestmark = pytest.mark.smoke


ENVIRON = {
    "PLATFORM_TOOL_ID": "t-env",
    "PLATFORM_TOOL_HOST": "tools.example.com",
    "PLATFORM_TOOL_REGION": "eu-1",
    "PLATFORM_ACCESS_KEY": "AKenv",
    "PLATFORM_SECRET_KEY": "SKenv",
    "DOUBLECHECK_API_KEY": "KEYenv",
}


def test_a_live_target_takes_defaults_from_the_environment() -> None:
    expected = Target(
        url="https://app.example.com",
        kind="live",
        tool_id="t-env",
        credentials=Credentials("AKenv", "SKenv"),
        api_key=Secret("KEYenv"),
        region="eu-1",
    )

    assert expected == Target.find("https://app.example.com/", "live", environ=ENVIRON)


@pytest.mark.parametrize(
    "url",
    [
        "foo",
        "http://a:99999",
        "http://u:p@a",
        "http://a\nb",
    ],
)
def test_an_unusable_address_is_refused(url: str) -> None:
    """The error shows the expected form."""
    with pytest.raises(TargetError, match="is not a usable address; use http://host"):
        Target(url)


def test_missing_keys_are_errors_when_needed() -> None:
    """The errors name the variables."""
    target = Target("http://a")

    with pytest.raises(CredentialsMissingError, match="PLATFORM_ACCESS_KEY and PLATFORM_SECRET"):
        target.address()
    with pytest.raises(CredentialsMissingError, match="PLATFORM_TOOL_ID"):
        target.sandbox_tool()


def test_a_target_returns_client_variables() -> None:
    """They have the specification's names by default, or those of a real client."""
    target = Target("http://a:1", tool_id="t-1", credentials=Credentials("AK", "SK"), region="r")

    assert {
        "PLATFORM_TOOL_ID": "t-1",
        "PLATFORM_TOOL_HOST": "a:1",
        "PLATFORM_TOOL_SCHEME": "http",
        "PLATFORM_TOOL_REGION": "r",
        "PLATFORM_ACCESS_KEY": "AK",
        "PLATFORM_SECRET_KEY": "SK",
    } == target.environment()
    assert "a:1" == target.environment("veadk")["AGENTKIT_TOOL_HOST"]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"DOUBLECHECK_URL": "http://a", "PLATFORM_TOOL_HOST": "b"}, "http://a"),
        ({"PLATFORM_TOOL_HOST": "b:1"}, "https://b:1"),
        ({"PLATFORM_TOOL_HOST": "b:1", "PLATFORM_TOOL_SCHEME": "http"}, "http://b:1"),
    ],
)
def test_the_environment_may_name_a_url(environ: dict[str, str], expected: str | None) -> None:
    """DOUBLECHECK_URL takes precedence; PLATFORM_TOOL_HOST is https by default."""
    assert expected == named_url(environ)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1", True),
        ("http://[::1]:1", True),
        ("http://localhost", True),
        ("http://localhost.example.com", False),
        ("http://10.0.0.1", False),
    ],
)
def test_loopback_addresses_are_local(url: str, expected: bool) -> None:
    assert expected == is_loopback(url)


def test_a_target_declares_its_surfaces() -> None:
    """The default depends on its kind; only an in-process double offers the library."""
    live = Target("http://a")
    double = Target("http://a", kind="double")
    narrow = Target("http://a", name="staging", offered=frozenset({"api_server"}))

    assert [(True, False), (True, True), (False, False)] == [
        (item.offers("application"), item.offers("services")) for item in (live, double, narrow)
    ]
    assert (False, True) == (double.offers("library"), double.offers("runtimes"))
    assert not live.offers("runtimes")
    assert ("live", "double", "staging") == (live.name, double.name, narrow.name)


def test_each_surface_may_have_its_own_address_and_key() -> None:
    """The defaults are the application's address and the target's key."""
    target = Target(
        "http://a",
        mcp="http://b/",
        control_plane="http://c",
        api_key=Secret("for all"),
        api_keys={"mcp": Secret("for mcp")},
    )

    assert ("http://a", "http://b", "http://c") == (
        target.at("api_server"),
        target.at("mcp"),
        target.at("control_plane"),
    )
    assert (Secret("for all"), Secret("for mcp")) == (target.key_of("a2a"), target.key_of("mcp"))
    assert not Target("http://127.0.0.1:1", mcp="http://elsewhere.example").loopback


def test_requests_go_to_the_surface_of_their_path(platform_server: Target) -> None:
    """``surface`` decides for ambiguous paths."""
    dead = "http://127.0.0.1:1"
    url, key = platform_server.url, Secret("k")
    target = Target(dead, api_server=url, mcp=url, a2a=url, api_keys={"api_server": key})

    with Platform(target) as platform:
        card = platform.request("GET", "/.well-known/agent-card.json")
        health = platform.request("GET", "/health", surface="api_server")
        assert platform.agents.list_apps()
        assert platform.mcp().tools()
        with pytest.raises(UnreachableError):
            platform.ping()

    assert (200, None) == (card.status_code, card.request.headers.get("authorization"))
    assert (200, "Bearer k") == (health.status_code, health.request.headers["authorization"])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "a2a"),
        ("/.well-known/agent-card.json", "a2a"),
        ("/run_sse?x", "api_server"),
        ("/apps/a/users/b/sessions", "api_server"),
        ("/mcp/service", "mcp"),
        ("/mcpx", "application"),
        ("/_emulator/health", "application"),
    ],
)
def test_a_path_belongs_to_one_surface(path: str, expected: str) -> None:
    """Unknown paths belong to the application."""
    assert expected == surface_of(path)


def test_a_secret_is_never_printed() -> None:
    """Only reveal() returns it."""
    secret = Secret("abc")

    assert ["***", "Secret('***')", "***"] == [str(secret), repr(secret), f"{secret}"]
    assert "abc" == secret.reveal()


def test_secrets_are_compared_by_value() -> None:
    """Equal secrets have equal hashes."""
    assert {Secret("a"), Secret("b")} == {Secret("a"), Secret("b"), Secret("a")}


EXAMPLES = {
    "address": "http://127.0.0.1:1",
    "count": 3,
    "file": "/ca.pem",
    "flag": "true",
    "kind": "double",
    "level": "smoke",
    "number": 3,
    "secret": "THE_VARIABLE",
    "secret_by_surface": "THE_VARIABLE",
    "surfaces": "mcp",
    "text": "some",
}


def by_name(fact: Fact) -> str:
    return fact.name


def test_the_options_of_run_are_facts() -> None:
    """Only ``target`` differs, because it may be repeated."""
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    options = [(param.name, param.opts, param.metavar, param.help) for param in command.params]

    expected = [(fact.name, [f"--{fact.option}"], fact.metavar, fact.help) for fact in OPTIONS]
    assert ("target", expected[1:]) == (options[0][0], options[1 : len(OPTIONS)])


def test_the_options_of_pytest_are_facts(pytester: pytest.Pytester) -> None:
    """They have the plugin's prefix and the order of the table."""
    words = [word.partition("=")[0] for word in pytester.runpytest_inprocess("--help").outlines]
    option_names = [word.strip() for word in words if word.startswith("  --platform-")]

    assert [f"--platform-{fact.option}" for fact in OPTIONS] == option_names[: len(OPTIONS)]


@pytest.mark.parametrize("fact", FACTS, ids=by_name)
def test_each_fact_can_be_set_in_a_file(tmp_path: Path, fact: Fact) -> None:
    """A secret is given as the name of its variable."""
    file = tmp_path / "pyproject.toml"
    value = EXAMPLES[fact.type]
    entry = f"{fact.key} = {value if fact.type == 'flag' else repr(value)}"
    file.write_text(f"[tool.doublecheck.targets.a]\n{entry}")

    read = config_files.read_project(file)

    assert read is not None
    assert [fact.key] == list(read.targets["a"].values)


@pytest.mark.parametrize("fact", [fact for fact in FACTS if fact.help], ids=by_name)
def test_each_fact_can_be_set_in_the_environment(fact: Fact) -> None:
    """The plan names the variable as its source."""
    planned = plan(Sources({}, {fact.variable: str(EXAMPLES[fact.type])}))

    assert [fact.variable] == [fact.source for fact in planned.facts.values()]
    assert [fact.key] == list(planned.facts)


def test_the_arguments_of_connect_are_facts() -> None:
    """The exceptions are the target and the settings of the client."""
    arguments = set(inspect.signature(doublecheck.connect).parameters)

    expected = {fact.name for fact in FACTS if fact.argument} | {"target"}
    assert expected == arguments - {"timeout_s", "apps"}


def test_a_target_survives_the_way_to_another_process() -> None:
    """Each field that a fact sets, and each secret, as a plan and as JSON."""
    pair = Credentials("AK", "SK")
    target = Target(
        "https://a.example",
        control_plane="https://tools.example",
        api_server="https://agents.example",
        mcp="https://mcp.example",
        a2a="https://a2a.example",
        tool_id="t-1",
        region="eu-1",
        credentials=pair,
        restricted=Credentials("AKr", "SKr"),
        api_key=Secret("KEY"),
        api_keys={"mcp": Secret("MCP")},
        other_key=Secret("OTHER"),
        token=Secret("TOKEN"),
        reference_app=True,
        allow_writes=True,
        ca_file="/ca.pem",
        examples=3,
        seed=7,
        level="quick",
        offered=frozenset({"application", "mcp"}),
    )

    copied = target_of_plan(from_json(json.loads(json.dumps(to_json(plan_of_target(target))))))

    assert target == copied
    assert target.other_key == copied.other_key
    unset = {field.name for field in fields(Target) if getattr(target, field.name) == field.default}
    of_this_process = {"make_service", "drop_service", "console"}
    assert {"kind", "name", "offers_assumed"} | of_this_process >= unset


def test_secrets_are_not_options() -> None:
    """Other users of a machine can read the arguments of commands."""
    assert [] == [fact.name for fact in OPTIONS if fact.secret]


def test_the_variables_agree_with_those_of_the_double() -> None:
    """The table cannot import them, because every pytest run imports the table."""
    variables = {fact.name: fact.variable for fact in FACTS}

    assert {
        "tool_id": environment.TOOL_ID,
        "region": environment.TOOL_REGION,
        "ca_file": environment.CA_FILE,
        "access_key": environment.ACCESS_KEY,
        "secret_key": environment.SECRET_KEY,
    }.items() <= variables.items()
