from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agentdouble.cli.executing import in_foreground
from tests.agentdouble.calling import http
from tests.agentdouble.cli.conftest import CommandLine, command

RUNTIME = """
[[runtimes]]
name = "my-files"
command = ["{python}", "-c", '''
import http.server, os
port = int(os.environ["PORT"])
http.server.HTTPServer(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler).serve_forever()
''']
"""
ASKING = """
import os, sys, urllib.request

def ask(url):
    return urllib.request.urlopen(url, timeout=60).read().decode()

print(ask(os.environ["AGENTDOUBLE_URL"] + "/ping"))
print(ask(os.environ["AGENTDOUBLE_URL_MY_FILES"] + "/told.txt"))
print(os.environ["AGENTDOUBLE_URL"].endswith(os.environ["PLATFORM_TOOL_HOST"]))
print(*(name in os.environ for name in ("AGENTKIT_TOOL_ID", "VOLCENGINE_AGENTKIT_HOST")))
print(sys.stdin.read())
sys.exit(7)
"""


@pytest.mark.slow
def test_command_finds_the_double_and_its_runtimes(command_line: CommandLine) -> None:
    """Input, output and exit code are the command's, without additional output."""
    (command_line.folder / "told.txt").write_text("from the runtime")
    (command_line.folder / "agentdouble.toml").write_text(RUNTIME.format(python=sys.executable))

    ended = command_line.in_its_own_python(
        "exec", "--", sys.executable, "-c", ASKING, typed="typed"
    )

    expected = ['{"status": "pong!"}', "from the runtime", "True", "True True", "typed"]
    assert (7, expected, "") == (ended.returncode, ended.stdout.splitlines(), ended.stderr)


@pytest.mark.slow
def test_signal_is_passed_on_before_the_double_stops(command_line: CommandLine) -> None:
    """Without a terminal that sends it to both; the exit code is a shell's."""
    script = 'echo "$AGENTDOUBLE_URL"; exec sleep 60'
    process = subprocess.Popen(
        command(("exec", "--for", "platform", "--", "sh", "-c", script)),
        cwd=command_line.folder,
        env=command_line.environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert 200 == http.get(f"{url}/ping").status_code

        process.send_signal(signal.SIGINT)

    assert 128 + signal.SIGINT == process.returncode
    with pytest.raises(httpx.ConnectError):
        http.get(f"{url}/ping")


def test_command_that_cannot_run_fails_like_in_a_shell(
    command_line: CommandLine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """127 for a missing one, before a double starts; 126 for one that is not a program."""
    missing = command_line.run_here("exec", "--", "no-such-command")
    (tmp_path / "text").write_text("no program")
    refused = in_foreground([str(tmp_path / "text")], {})

    assert (127, "agentdouble: no-such-command: command not found.\n") == (
        missing.returncode,
        missing.stderr,
    )
    assert (126, f"agentdouble: {tmp_path / 'text'}: permission denied.\n") == (
        refused,
        capfd.readouterr().err,
    )


def test_double_that_fails_to_start_is_an_error(command_line: CommandLine) -> None:
    """The command is not run."""
    (command_line.folder / "agentdouble.toml").write_text("prot = 1\n")

    ended = command_line.run_here("exec", "--", "touch", "ran")
    unknown = command_line.run_here("exec", "--for", "nobody", "--", "touch", "ran")

    assert (2, 2) == (ended.returncode, unknown.returncode)
    assert "prot" in ended.stderr
    assert (
        "--for takes one of platform, veadk, agentkit, model, jupyter; 'nobody' is none"
        in unknown.stderr
    )
    assert not (command_line.folder / "ran").exists()
