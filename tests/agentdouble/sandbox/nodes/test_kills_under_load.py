from __future__ import annotations

import itertools
import random
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import background, body_of, call, eventually, http
from tests.agentdouble.sandbox.nodes.fronts import (
    front,
    have_joined,
    inner,
    living,
    nodes,
    process_of,
)

pytestmark = pytest.mark.slow
KILLS, CALLERS, MOST = 20, 3, 1000


@dataclass
class Load:
    """Callers that count in sessions of their own, and one that makes sessions."""

    double: Emulator
    stopped: threading.Event = field(default_factory=threading.Event)
    calls: int = 0
    lost: int = 0
    wrong: list[Any] = field(default_factory=list)

    def count(self, caller: int) -> None:
        """Count up; after a loss the session is new and starts at 1."""
        before, code = 0, f"n = globals().get('n', 0) + 1; print({caller}, n)"
        while not self.stopped.is_set():
            text = self._call(code, f"count-{caller}")
            self.calls += 1
            number = 0 if text is None else int(text.split()[1])
            if text is not None and text not in (f"{caller} {before + 1}\n", f"{caller} 1\n"):
                self.wrong.append((caller, before, text))
            before = number

    def make(self) -> None:
        for number in itertools.count():
            if self.stopped.is_set():
                return
            if self._call(f"print({number})", f"new-{number}") not in (None, f"{number}\n"):
                self.wrong.append(("new", number))

    def _call(self, code: str, session: str) -> str | None:
        """Return what the code printed, or None if its node was lost."""
        answer = call(self.double, body_of(self.double, code, session))
        if answer.status_code != 200:
            self.wrong.append(answer.text)
            return None
        outputs = inner(answer)["data"]["outputs"]
        if outputs[-1]["ename"] == "KernelDied":
            self.lost += 1
            return None
        return "".join(output["text"] or "" for output in outputs)


def test_no_answer_is_wrong_while_nodes_are_killed() -> None:
    """Callers are told, sessions of other nodes live on, and every new session starts."""
    chance = random.Random(1)
    with front(3) as double:
        load = Load(double)
        work = [background(lambda n=number: load.count(n)) for number in range(CALLERS)]
        work.append(background(load.make))
        for _ in range(KILLS):
            name = chance.choice(sorted(nodes(double)))
            elsewhere = {s["SessionId"] for s in living(double).values() if s["node"] != name}
            process = process_of(double, name)
            process.kill()
            process.wait(30)
            eventually(lambda: nodes(double), lambda listed, lost=name: lost not in listed)
            assert set() == elsewhere - {s["SessionId"] for s in living(double).values()}
            have_joined(double, 3)
        load.stopped.set()
        for future in work:
            future.result(60)

    assert [] == load.wrong
    assert load.calls > KILLS
    assert load.lost > 0


def test_sessions_of_all_nodes_end_when_the_clock_moves() -> None:
    """All are gone when the move returns."""
    with front(3) as double:

        def make(first: int) -> None:
            for number in range(first, MOST, CALLERS):
                answer = call(double, body_of(double, "1", f"s{number}"))
                assert 200 == answer.status_code, answer.text

        for future in [background(lambda n=number: make(n)) for number in range(CALLERS)]:
            future.result(300)
        sessions = living(double).values()
        assert MOST == len(sessions)
        assert 3 == len({session["node"] for session in sessions})
        double.clock.advance(minutes=30)

        assert {} == living(double)
        ended = http.get(f"{double.url}/_emulator/sessions").json()["ended"]
        assert MOST == len(ended)
