from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
import typer

import doublecheck
from agentdouble.core import environment
from doublecheck import Target
from doublecheck.cli import app
from doublecheck.target import config_files
from doublecheck.target.facts import FACTS, OPTIONS, Fact
from doublecheck.target.plan import FIELDS, Sources, plan

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


def test_a_target_has_a_field_for_each_fact() -> None:
    """Secrets are excepted."""
    assert set(FIELDS.values()) <= {field.name for field in fields(Target)}


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
