"""Wrong inputs of commands, settings and variables: what is wrong, where, and what to do.

Each is one line on stderr, or the usage of the command with such a line below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agentdouble.cli.conftest import CommandLine, Serving, command_line_in

pytestmark = pytest.mark.once

DEAD = "http://127.0.0.1:9"


def refusal(command_line: CommandLine, *words: str) -> str:
    """Run a command that is refused, and return the line that says why."""
    done = command_line.run_here(*words)
    assert (2, "") == (done.returncode, done.stdout), done
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 or lines[0].startswith("Usage: "), done.stderr
    return lines[-1].removeprefix("agentdouble: ").removeprefix("Error: ")


def given(command_line: CommandLine, variables: Mapping[str, str]) -> CommandLine:
    return replace(command_line, environment={**command_line.environment, **variables})


@pytest.fixture
def stranger(tmp_path: Path) -> CommandLine:
    """The command line of someone who has not started the shared double, and has no keys."""
    command_line = command_line_in(tmp_path)
    del command_line.environment["AGENTDOUBLE_TOKEN"]
    return command_line


@pytest.mark.parametrize(
    "words", [("journal",), ("call", "ListTools"), ("env",), ("faults", "list")]
)
def test_a_dead_address_is_told_from_a_double_of_someone_else(
    shared_command_line: CommandLine,
    shared_double: Serving,
    stranger: CommandLine,
    words: tuple[str, ...],
) -> None:
    """The first with the doubles that run, the second with the variables to set."""
    dead = refusal(shared_command_line, *words, "--url", DEAD)
    nothing_runs = refusal(stranger, *words, "--url", DEAD)
    foreign = refusal(stranger, *words, "--url", shared_double.url)

    assert dead.startswith(f"Nothing answers at {DEAD} (")
    assert dead.endswith(f"). Running doubles: {shared_double.url}.")
    assert nothing_runs.endswith("). Start one: agentdouble serve")
    keys = "PLATFORM_ACCESS_KEY and PLATFORM_SECRET_KEY"
    needed = "AGENTDOUBLE_TOKEN" if words[0] in ("journal", "faults") else keys
    assert foreign == (
        f"{shared_double.url} is a double, but you did not start it here: set {needed}, as "
        "'agentdouble env' prints where it runs."
    )


def test_a_token_alone_is_enough_for_the_double_s_own_routes(
    stranger: CommandLine, shared_double: Serving, shared_command_line: CommandLine
) -> None:
    """They are not signed; a wrong token is named as such."""
    token = shared_command_line.environment["AGENTDOUBLE_TOKEN"]
    url = ("--url", shared_double.url)

    listed = given(stranger, {"AGENTDOUBLE_TOKEN": token}).run_here("faults", "list", *url)
    wrong = refusal(given(stranger, {"AGENTDOUBLE_TOKEN": "wrong"}), "faults", "list", *url)

    assert 0 == listed.returncode, listed.stderr
    assert wrong == f"{shared_double.url} does not accept the token or key in AGENTDOUBLE_TOKEN."


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("call", "Name an action. See: agentdouble call --list"),
        (
            "call NoSuchAction",
            "The platform has no action 'NoSuchAction'. See: agentdouble call --list",
        ),
        ("sign ListTool", "Did you mean ListTools or ListMCPTools or ListToolTypes?"),
        ("call listtools", "Did you mean ListTools or "),
        ("call --list ListTool", "Did you mean ListTools or "),
        (
            "call CreateTool Nmae=x",
            "missing Name parameter. The field Nmae was not used. Did you mean Name?",
        ),
        ("call CreateTool x=1", "MissingParameter: The request is missing Name parameter."),
        ("clock advance -5m", "Time only moves forward. A reset sets it back"),
        ("clock advance 30", "A duration looks like 90s, 30m, 2h or 1h30m, not '30'."),
        ("clock advance 1w", "A duration looks like 90s, 30m, 2h or 1h30m, not '1w'."),
        ("clock advance 9999999999d", "'9999999999d' is too long for the clock."),
        ("nodes drain worker --deadline -5m", "--deadline is a time from now, such as 30m"),
        ("nodes drain worker --deadline soon", "A duration looks like 90s"),
        ("session attach nope", "No living session 'nope'. See: agentdouble session list"),
        ("session delete", "Missing argument 'SESSION'."),
        (
            "faults arm fail Invoketol",
            "There is no operation 'Invoketol'. Did you mean InvokeTool?",
        ),
        ("faults arm fail", "A fault is KIND OPERATION NAME=VALUE ..., or one JSON object."),
        ("faults arm fial ping", "There is no kind of fault 'fial'. Did you mean fail?"),
        ("faults release f99", "There is no armed fault 'f99'"),
        ("env --for veadkk", "--for takes one of platform, veadk, "),
        ("env --port 1", "No double is running on port 1. Start one: agentdouble serve"),
        ("mcp delete nope", "No MCP service 'nope'. See: agentdouble mcp list"),
        ("mcp create x ftp://host", "'ftp://host' is not a backend. Give the URL of an MCP server"),
        ("journal --status abc", "Invalid value for '--status': Input should be a valid integer"),
        ("serv", "No such command 'serv'. Did you mean 'serve'?"),
        ("serve --prot 80", "No such option: --prot"),
        ("serve --nodes foo://x", "--nodes must be ray://HOST:PORT or local://N, not 'foo://x'."),
        ("serve --port 99999", "--port must be less than or equal to 65535, not 99999."),
        ("serve --unknown U-NOPE=x", "There is no unknown 'U-NOPE'."),
        ("serve --unknown U-TTL-EXTENDS=slidng", "Did you mean sliding?"),
        ("serve --profile none.toml", "none.toml cannot be read: No such file or directory"),
        ("serve --config none.toml", "The settings file none.toml cannot be read: No such file"),
        ("serve nomodule:app", "No module named 'nomodule'"),
    ],
)
def test_commands_explain_wrong_words(
    shared_command_line: CommandLine, shared_double: Serving, words: str, says: str
) -> None:
    assert says in refusal(shared_command_line, *words.split())


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PROT", "9000", "Unknown setting in the environment: AGENTDOUBLE_PROT. Did you mean AGENTDOUBLE_PORT?"),
        ("PORT", "abc", "The setting port from the environment (AGENTDOUBLE_PORT) must be a valid integer"),
        ("TLS", "maybe", "(AGENTDOUBLE_TLS) must be a valid boolean"),
        ("ISOLATION", "some", "(AGENTDOUBLE_ISOLATION) must be 'auto' or 'none', not 'some'."),
        ("NODES", "foo", "must be ray://HOST:PORT or local://N, not 'foo'."),
        ("VISIBLE_PATHS", '["data"]', "must be an absolute path."),
        ("TOOL_ID", "sandbox", "must be t- and letters, digits or -, not 'sandbox'."),
        ("ALLOW_HOSTS", "host", '(AGENTDOUBLE_ALLOW_HOSTS) must be JSON: a list such as ["A", "B"]'),
        ("STATE", "mysql://x", "sqlite:///"),
        ("APPS", "x:app", "Applications come first: "),
        ("API_KEY", "", "(AGENTDOUBLE_API_KEY) must not be empty."),
        ("CONFIG", "none.toml", "The settings file none.toml cannot be read: No such file"),
    ],
)  # fmt: skip
def test_variables_explain_wrong_values(
    command_line: CommandLine, name: str, value: str, says: str
) -> None:
    """They name the variable, and what it must be."""
    changed = given(command_line, {f"AGENTDOUBLE_{name}": value})
    port = () if name == "PORT" else ("--port", "0")

    assert says in refusal(changed, "serve", *port)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prot = 1", "Unknown setting in agentdouble.toml: prot. Did you mean port?"),
        ("port = ", "The settings file agentdouble.toml cannot be read: Invalid value"),
        ("apps = ['x:app']", "apps in agentdouble.toml is not a setting. Applications come first"),
        ("secret_key = 42", "The setting secret_key from agentdouble.toml must be a valid string."),
    ],
)
def test_files_explain_wrong_settings(command_line: CommandLine, text: str, says: str) -> None:
    """They name the file; a secret is not shown."""
    (command_line.folder / "agentdouble.toml").write_text(text)

    assert says in refusal(command_line, "serve", "--port", "0")


def test_a_field_that_nothing_uses_is_a_warning(
    shared_command_line: CommandLine, shared_double: Serving
) -> None:
    """The call has an effect all the same."""
    done = shared_command_line.run_here(
        *("call", "CreateTool", "Name=x", "ToolType=CodeEnv", "Descripton=y")
    )

    assert (0, True) == (done.returncode, '"ToolId"' in done.stdout)
    assert done.stderr == (
        "Warning: the double does not use Descripton. See: agentdouble call --list CreateTool\n"
    )


def test_actions_and_their_fields_are_listed(
    shared_command_line: CommandLine, shared_double: Serving, command_line: CommandLine
) -> None:
    """With what they do and need; without a double by their names."""
    run = shared_command_line.run_here
    actions = run("call", "--list").stdout.splitlines()
    fields = run("call", "--list", "CreateTool").stdout.splitlines()
    names = command_line.run_here("call", "--list")

    assert actions[0].split() == ["Action", "What", "it", "does"]
    assert any(line.startswith("CreateTool  ") for line in actions)
    assert fields[0].split() == ["Field", "Type", "Required"]
    assert ["Name", "string", "yes"] in [line.split() for line in fields]
    assert {"ListTools", "InvokeTool"} <= {*names.stdout.split()}
    assert "No double is running." in names.stderr


def test_a_url_without_a_port_is_refused(command_line: CommandLine) -> None:
    """Also one in the environment, which it names."""
    changed = given(command_line, {"AGENTDOUBLE_URL": "localhost"})

    assert "AGENTDOUBLE_URL must be an address like http://host:8000, not 'localhost'." == refusal(
        changed, "journal"
    )
