"""Pages read event streams with lines that end in CR, LF or both."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import deno
import pytest

import agentdouble.console
from tests import machine
from tests.mcp_official.suite import find_npm

API = Path(agentdouble.console.__file__).parent / "static/lib/api.js"
PROGRAM = """
    const { textEvents } = await import(Deno.args[0]);
    const pieces = JSON.parse(Deno.args[1]).map(text => new TextEncoder().encode(text));
    let sent = 0;
    const body = new ReadableStream({
      pull(stream) {
        if (sent < pieces.length) stream.enqueue(pieces[sent++]);
        else stream.close();
      },
    }, { highWaterMark: 0 });
    for await (const { data } of textEvents(new Response(body))) {
      console.log(JSON.stringify([data, sent]));
    }
    """


@pytest.mark.parametrize(
    "pieces",
    [
        ["data: a\u2028b\n\n", "data: c\n\n"],
        ["data: a\u2028b\r\r", "data: c\r\r"],
        ["data: a\u2028b\r\n\r\n", "data: c\r\n\r\n"],
        ["data: a\u2028b\r\n\r", "\ndata: c\r\n\r", "\n"],
    ],
)
def test_an_event_is_complete_when_its_last_line_ends(pieces: list[str]) -> None:
    command = [deno.find_deno_bin(), "run", "--quiet", "--allow-read", "-"]

    ended = subprocess.run(
        [*command, API.as_uri(), json.dumps(pieces)],
        input=PROGRAM,
        capture_output=True,
        text=True,
        timeout=60,
    )

    events = [json.loads(line) for line in ended.stdout.split("\n")[:-1]]
    assert [["a\u2028b", 1], ["c", 2]] == events, ended.stderr


TYPESCRIPT = "typescript@5.9.3"
PROJECT = Path(__file__).parent  # tsconfig.json is here


@pytest.mark.once
@pytest.mark.slow
def test_the_console_modules_type_check() -> None:
    """npm fetches TypeScript once."""
    npm = find_npm()
    if npm is None:
        machine.lack("needs npm: pip install 'agentdouble[conformance]'")
    tsc = [*npm, "exec", "--yes", f"--package={TYPESCRIPT}", "--", "tsc"]

    outcome = subprocess.run([*tsc, "-p", PROJECT], capture_output=True, text=True, timeout=300)

    assert (0, "") == (outcome.returncode, outcome.stdout), outcome.stderr
