"""The requests of agents to the double's model name their cause."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator, SimpleApp
from agentdouble.core.request_cause import HEADER
from tests.agentdouble.calling import http

app = SimpleApp("thinking")
WHO = {"user_id": "ann", "session_id": "s1"}
QUESTION = {"model": "m", "messages": [{"role": "user", "content": "print(1)"}]}
AGENT = """
import os, httpx

async def root_agent(message, session):
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(os.environ["ASKED"], headers={"x-api-key": os.environ["KEY"]})
    yield str(answer.status_code)
"""


@app.entrypoint
async def entrypoint(payload: dict[str, Any], _headers: dict[str, str]) -> Any:
    sent = {"json": QUESTION, "headers": {"Authorization": f"Bearer {payload['key']}"}}
    if not payload["soon"]:
        return await asyncio.to_thread(_post, payload["url"], sent)
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.post(payload["url"], **sent)).status_code


def _post(url: str, sent: dict[str, Any]) -> int:
    return httpx.post(url, **sent, trust_env=False).status_code


@pytest.fixture(scope="module")
def hosting() -> Iterator[Emulator]:
    with Emulator(app) as double:
        script = {"steps": [{"text": "yes", "times": "all"}]}
        http.post(f"{double.url}/_emulator/model", json=script).raise_for_status()
        yield double


def key_of(double: Emulator) -> str:
    return double.environment("model")["OPENAI_API_KEY"]


def last(double: Emulator) -> tuple[str | None, int | None, int]:
    """Return the cause that the last request names, the known one, and the first request's id."""
    entries = double.journal.entries()
    named = dict(entries[-1].request_headers).get(HEADER)
    return named, entries[-1].caused_by, entries[0].id


@pytest.mark.parametrize("soon", [True, False], ids=["async", "blocking"])
def test_a_request_to_the_model_names_the_invocation(hosting: Emulator, soon: bool) -> None:
    hosting.journal.clear()
    url = f"{hosting.url}/model/v1/chat/completions"
    asked = {"url": url, "key": key_of(hosting), "soon": soon}

    answer = http.post(f"{hosting.url}/invoke", json=asked, headers=WHO)

    named, cause, first = last(hosting)
    assert ("200", f"{hosting.journal.name}-{first}", first) == (answer.text, named, cause)


@pytest.mark.parametrize("path", ["/model/v1/chat/completions", "/ping"])
def test_no_other_request_names_it(hosting: Emulator, path: str) -> None:
    """Neither one to another address nor one to another surface, nor one outside of agents."""
    with Emulator(pool_size=0) as other:
        place = other if path.startswith("/model") else hosting
        asked = {"url": f"{place.url}{path}", "key": key_of(place), "soon": True}
        http.post(f"{hosting.url}/invoke", json=asked, headers=WHO)
        within, _, _ = last(place)
        assert place.journal.entries()[-1].url.endswith(path)
        http.post(f"{hosting.url}{path}", json=QUESTION, headers={"x-api-key": key_of(hosting)})
        without, cause, _ = last(hosting)
        assert hosting.journal.entries()[-1].url.endswith(path)

    assert (None, None, None) == (within, without, cause)


def test_a_run_of_an_agent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent runs on a loop of its own."""
    (tmp_path / "thinker.py").write_text(AGENT)
    with Emulator(agents=tmp_path) as double:
        monkeypatch.setitem(os.environ, "ASKED", f"{double.url}/model/v1/models")
        monkeypatch.setitem(os.environ, "KEY", key_of(double))
        path = f"{double.url}/apps/thinker/users/ann/sessions/s1"
        http.post(path, json={}).raise_for_status()
        double.journal.clear()
        message = {"role": "user", "parts": [{"text": "x"}]}
        body = {"appName": "thinker", "userId": "ann", "sessionId": "s1", "newMessage": message}
        http.post(f"{double.url}/run", json=body).raise_for_status()

        _, cause, first = last(double)
        assert cause == first
        assert double.journal.entries()[-1].url.endswith("/model/v1/models")
