from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import pytest

from tests.agentdouble.cli.conftest import CommandLine, Serving

pytestmark = pytest.mark.smoke


def lines(command_line: CommandLine, *words: str) -> str:
    """Run a command that succeeds and return its output."""
    done = command_line.run(*words)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def refusal(command_line: CommandLine, *words: str) -> str:
    """Run a command that is refused and return its one line of output."""
    done = command_line.run(*words)
    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    return done.stderr.removeprefix("agentdouble: ").rstrip("\n")


def read(command_line: CommandLine, *words: str) -> Any:
    return json.loads(lines(command_line, *words, "--json"))


def test_any_action_can_be_called(shared_command_line: CommandLine, shared_double: Serving) -> None:
    """Values are JSON or text, dots in a name select nested fields, and @ reads a file."""
    command_line = shared_command_line
    (command_line.folder / "envs.json").write_text('[{"Key": "A", "Value": "b=c"}]')
    created = command_line.run(
        *("call", "CreateTool", "Name=research", "ToolType=CodeEnv", "Envs=@envs.json"),
        *('Description="42"', "NetworkConfiguration.EnablePublicNetwork=true", "--json"),
    )
    tool_id = json.loads(created.stdout)["ToolId"]
    tool = json.loads(lines(command_line, "call", "GetTool", f"ToolId={tool_id}"))
    deleted = read(command_line, "call", "DeleteTool", f"ToolId={tool_id}")

    assert re.fullmatch(r"t-[0-9a-f]{20}", tool_id)
    assert ("research", "42", [{"Key": "A", "Value": "b=c"}]) == tuple(
        tool[key] for key in ("Name", "Description", "Envs")
    )
    assert {"ToolId": tool_id} == deleted
    assert "the double does not use NetworkConfiguration." in created.stderr


def test_text_that_holds_json_needs_no_quotes(
    shared_command_line: CommandLine, shared_double: Serving
) -> None:
    """InvokeTool takes its payload as a text, from the words, a file, or in quotes as before."""
    command_line, payload = shared_command_line, '{"code": "print(6 * 7)"}'
    (command_line.folder / "payload.json").write_text(payload)
    request = ("InvokeTool", "ToolId=t-sandbox", "UserSessionId=s1", "OperationType=RunCode")
    for written in (payload, "@payload.json", json.dumps(payload)):
        words = (*request, f"OperationPayload={written}")
        result = read(command_line, "call", *words)
        signed = lines(command_line, "sign", *words)

        assert "42\n" == json.loads(result["Result"])["data"]["outputs"][0]["text"]
        sent = shlex.split(signed)
        assert json.loads(sent[sent.index("--data-binary") + 1])["OperationPayload"] == payload


def test_a_signed_command_without_https_names_no_certificates(
    shared_command_line: CommandLine, shared_double: Serving
) -> None:
    """Even if the environment does."""
    environment = {**shared_command_line.environment, "SSL_CERT_FILE": "/etc/ca.pem"}

    assert "--cacert" not in lines(
        replace(shared_command_line, environment=environment), "sign", "ListTools"
    )


def test_errors_are_one_line(shared_command_line: CommandLine, shared_double: Serving) -> None:
    """The platform's code and message, or the usage error, and exit code 2."""
    command_line = shared_command_line
    (command_line.folder / "binary").write_bytes(b"\xff")
    errors = [
        refusal(command_line, "call", *words)
        for words in (
            ("DeleteTool", "ToolId=t-none"),
            ("ListTool",),
            ("ListTools", "a"),
            ("ListTools", "a..b=1"),
            ("ListTools", "a=1", "a.b=2"),
            ("ListTools", "a=@none"),
            ("ListTools", "a=@binary"),
        )
    ]

    assert errors[0].startswith("InvalidResource.NotFound: There is no tool 't-none'")
    assert errors[1].startswith("The platform has no action 'ListTool'. Did you mean ListTools or ")
    assert [
        "'a' is not NAME=VALUE. See: agentdouble call --help",
        "'a..b=1' is not NAME=VALUE. See: agentdouble call --help",
        "a.b: a already has another value.",
        "a: none cannot be read: No such file or directory.",
        "a: binary cannot be read: it is not UTF-8 text.",
    ] == errors[2:]
    assert "No living session 'u'. See: agentdouble session list" == refusal(
        command_line, "session", "delete", "u"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("call", "ListTools"),
        ("session", "list"),
        ("journal", "-f"),
    ],
)
def test_commands_without_a_double_say_how_to_start_one(
    command_line: CommandLine, words: tuple[str, ...]
) -> None:
    """No traceback, no guess at an address."""
    assert (
        "No double is running. Start one: agentdouble serve, or name one elsewhere with --url"
        == refusal(command_line, *words)
    )


def test_invalid_address_is_refused(command_line: CommandLine) -> None:
    """The message says what is wrong with it."""
    message = "--url must be an address like http://host:8000, not 'localhost'."
    assert message == refusal(command_line, "call", "ListTools", "--url", "localhost")


def test_help_has_examples(command_line: CommandLine) -> None:
    """For each command."""
    for words in (("call",), ("session", "delete"), ("session", "attach")):
        assert f"agentdouble {' '.join(words)} " in lines(command_line, *words, "--help")
