"""``agentdouble demo``: the whole life of a session, in one transcript.

It starts a double and calls the shipped coder as any client would, over POST /invoke with user_id
and session_id. The coder runs the code of each prompt through run_code. Nothing is prepared: each
step says what the result must be, and the result is checked.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httpx
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from agentdouble.core import terminal
from agentdouble.errors import MissingExtraError

try:
    import psutil

    from agentdouble.emulator import Emulator
    from agentdouble.processes import capacity
except ModuleNotFoundError as error:
    if (error.name or "").startswith("agentdouble"):
        raise
    raise MissingExtraError("The demo", extra="emulator") from error

USER = "ann"
HALF_HOUR_S = 30 * 60
_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\(data:image/png;base64,(?P<data>[A-Za-z0-9+/=]+)\)")
_PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()[:10]

Check = Callable[[str], bool]


@dataclass(frozen=True)
class DemoStep:
    """One prompt of the transcript: session, code, and required result."""

    title: str
    session: str
    code: str
    claim: str
    check: Check


def _is(expected: str) -> Check:
    return lambda answer: answer.strip() == expected


def _has(*parts: str) -> Check:
    return lambda answer: all(part in answer for part in parts)


def _shows_a_plot(answer: str) -> bool:
    match = _IMAGE.search(answer)
    return match is not None and match["data"].startswith(_PNG)


BEFORE = (
    DemoStep("A result", "s1", "6 * 7", "the code really ran", _is("42")),
    DemoStep(
        "State is kept between turns",
        "s1",
        "squares = [n * n for n in range(5)]\nprint(squares)",
        "the first turn prints",
        _is("[0, 1, 4, 9, 16]"),
    ),
    DemoStep("", "s1", "sum(squares)", "the next turn remembers", _is("30")),
    DemoStep(
        "Two sessions do not see each other",
        "s2",
        "squares",
        "another session does not see it",
        _has("NameError", "'squares' is not defined"),
    ),
    DemoStep(
        "An exception comes back with its traceback",
        "s1",
        "def share(cake, guests):\n    return cake / guests\n\nshare(1, 0)",
        "the traceback names the line",
        _has("ZeroDivisionError", "return cake / guests"),
    ),
    DemoStep(
        "A plot comes back as an image",
        "s1",
        "import matplotlib.pyplot as plt\n\nplt.plot(squares)\nplt.show()",
        "a PNG image arrived",
        _shows_a_plot,
    ),
)
AFTER = DemoStep(
    "", "s1", "squares", "the session was destroyed: its state is gone", _has("NameError")
)


def run() -> int:
    """Run the transcript; return 0 if every step had the required result, else 1."""
    console = terminal.console(highlight=False)
    started = time.monotonic()
    capacity.raise_limit()
    # No session sleeps, so that the end of their processes can be seen.
    emulator = Emulator(max_sleeping_sessions=0)
    with emulator as double, httpx.Client(base_url=double.url, timeout=60) as client:
        client.headers["Authorization"] = f"Bearer {double.token}"
        stage = _Stage(console, client)
        console.print(f"[bold]agentdouble demo[/bold]: a double answers at {double.url}")
        stage.play(BEFORE)
        stage.let_time_pass()
        stage.play((AFTER,))
    seconds = time.monotonic() - started
    if stage.failed:
        console.print(f"\n[bold red]{stage.failed} steps did not give the expected result.[/]")
        return 1
    console.print(
        f"\n[bold green]All {stage.passed} steps gave the expected result[/], in {seconds:.1f} s."
    )
    console.print("Next: [bold]agentdouble serve[/bold], or your own app: agentdouble serve my:app")
    console.print("It prints the web console's address; [bold]--open[/bold] opens it in a browser.")
    return 0


class _Stage:
    """The run of a transcript: it sends, shows, checks and counts."""

    def __init__(self, console: Console, client: httpx.Client) -> None:
        self.passed = 0
        self.failed = 0
        self._console = console
        self._client = client

    def play(self, steps: Iterable[DemoStep]) -> None:
        for step in steps:
            if step.title:
                self._title(step.title)
            self._console.print(f"  [cyan]{USER}, session {step.session}[/cyan]")
            code = Syntax(step.code, "python", background_color="default", padding=(0, 4))
            self._console.print(code)
            with self._console.status("the sandbox runs it"):
                answer = self._ask(step)
            self._console.print("  [magenta]coder[/magenta]")
            style = "red" if answer.startswith("Error") else ""
            for line in _IMAGE.sub(_describe, answer).splitlines():
                if not line.startswith("```"):
                    self._console.print(Text(f"    {line}", style=style))
            self._verdict(step.check(answer), step.claim)

    def let_time_pass(self) -> None:
        """Move the platform's clock by 30 minutes and check that the sessions have ended."""
        self._title("After 30 minutes a session is destroyed")
        before = self._sessions()
        self._client.post("/_emulator/clock", json={"advance_s": HALF_HOUR_S})
        self._console.print("  [dim]the double's clock is advanced by 30 minutes[/dim]")
        have_ended = not any(
            psutil.pid_exists(pid) for session in before for pid in session["pids"]
        )
        self._verdict(
            len(before) == 2 and not self._sessions() and have_ended,
            f"{len(before)} sessions were alive; none is, and their processes are gone",
        )

    def _ask(self, step: DemoStep) -> str:
        response = self._client.post(
            "/invoke",
            json={"prompt": f"Please run this:\n```python\n{step.code}\n```\n"},
            headers={"user_id": USER, "session_id": step.session},
        )
        return str(response.json())

    def _sessions(self) -> list[dict[str, Any]]:
        sessions: list[dict[str, Any]] = self._client.get("/_emulator/sessions").json()["sessions"]
        return sessions

    def _title(self, title: str) -> None:
        self._console.print(f"\n[bold]{title}[/bold]")

    def _verdict(self, good: bool, claim: str) -> None:
        self.passed += good
        self.failed += not good
        mark = "[green]✔[/green]" if good else "[bold red]✘ failed:[/bold red]"
        self._console.print(f"  {mark} {claim}")


def _describe(image: re.Match[str]) -> str:
    return f"PNG image, {len(image['data']) * 3 // 4 // 1024} KiB: {image['alt']}"
