"""Jupyter's own sessions, by which clients without a Jupyter server begin kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import run, text
from tests.agentdouble.jupyter.notebook_client import JupyterClient

pytestmark = pytest.mark.smoke

PYTHON = {"name": "python3"}


@pytest.fixture
def jupyter(double: Emulator) -> Iterator[JupyterClient]:
    """A client of the Jupyter server of a double."""
    client = JupyterClient(double)
    yield client
    client.http.close()


def begin(jupyter: JupyterClient, path: str, **kernel: str) -> dict[str, Any]:
    """Begin the session of a notebook."""
    body = {"path": path, "type": "notebook", "name": "a", "kernel": kernel}
    answer = jupyter.http.post("/sessions", json=body)
    assert 201 == answer.status_code, answer.text
    session: dict[str, Any] = answer.json()
    assert answer.headers["location"].endswith(f"/sessions/{session['id']}")
    return session


def steady(session: dict[str, Any]) -> dict[str, Any]:
    """Return a session without what its kernel changes by itself, while it starts, for example."""
    changing = ("execution_state", "last_activity")
    kernel = {name: it for name, it in session["kernel"].items() if name not in changing}
    return {**session, "kernel": kernel}


def kernels(jupyter: JupyterClient) -> list[str]:
    """Return the ids of the listed kernels."""
    return [kernel["id"] for kernel in jupyter.http.get("/kernels").json()]


def test_a_notebook_has_a_session_with_a_kernel(jupyter: JupyterClient) -> None:
    """One for each path, and it is listed until it ends."""
    session = begin(jupyter, "a.ipynb", **PYTHON)

    again = begin(jupyter, "a.ipynb", **PYTHON)
    (listed,) = jupyter.http.get("/sessions").json()
    found = jupyter.http.get(f"/sessions/{session['id']}").json()
    assert [steady(session)] * 3 == [steady(each) for each in (again, listed, found)]
    assert ("a.ipynb", {"path": "a.ipynb", "name": "a"}) == (session["path"], session["notebook"])
    with jupyter.attached(session["kernel"]["id"]) as notebook:
        assert "2\n" == notebook.text("print(1 + 1)")
    assert 204 == jupyter.http.delete(f"/sessions/{session['id']}").status_code
    assert ([], []) == (jupyter.http.get("/sessions").json(), kernels(jupyter))


def test_a_session_of_an_agent_is_opened_and_left(double: Emulator, jupyter: JupyterClient) -> None:
    """By its kernelspec or by the id of its kernel."""
    run(double, "x = 41", "agent")
    id_ = jupyter.kernel_of("agent")
    specs = jupyter.http.get("/kernelspecs").json()["kernelspecs"]
    (name,) = (name for name in specs if name.startswith("session-"))

    by_name, by_id = begin(jupyter, "a", name=name), begin(jupyter, "b", id=id_)

    assert [id_, id_] == [session["kernel"]["id"] for session in (by_name, by_id)]
    for session in (by_name, by_id):
        assert 204 == jupyter.http.delete(f"/sessions/{session['id']}").status_code
    assert "41\n" == text(double, "print(x)", "agent")


def test_a_session_changes_its_place_and_its_kernel(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """The kernel that it leaves ends, if it was Jupyter's."""
    run(double, "x = 41", "agent")
    session, agents = begin(jupyter, "a", **PYTHON), jupyter.kernel_of("agent")

    def change(**fields: Any) -> dict[str, Any]:
        changed: dict[str, Any] = jupyter.http.patch(
            f"/sessions/{session['id']}", json=fields
        ).json()
        return changed

    moved = {**session, "path": "b", "notebook": {"path": "b", "name": "a"}}
    assert steady(moved) == steady(change(path="b"))
    assert agents == change(kernel={"id": agents})["kernel"]["id"]
    assert [agents] == kernels(jupyter)
    new = change(kernel=PYTHON)["kernel"]["id"]
    assert {agents, new} == {*kernels(jupyter)}


def test_a_session_ends_with_its_kernel(double: Emulator, jupyter: JupyterClient) -> None:
    session = begin(jupyter, "a", **PYTHON)
    double.clock.advance(minutes=31)

    assert [] == jupyter.http.get("/sessions").json()
    for method in ("GET", "DELETE", "PATCH"):
        answer = jupyter.http.request(method, f"/sessions/{session['id']}", json={})
        assert 404 == answer.status_code
        assert "its kernel may have ended" in answer.json()["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "path: Field required"),
        ({"path": 1, "type": "notebook"}, "path: Input should be a valid string"),
        ({"path": "a", "type": "notebook", "kernel": "python3"}, "kernel: Input should be"),
        ([], "Input should be a valid dictionary"),
        ({"path": "a", "type": "notebook", "kernel": {"id": "none"}}, "no kernel 'none'"),
        ({"path": "a", "type": "notebook", "kernel": {"name": "cobol"}}, "'cobol'"),
    ],
)
def test_a_session_that_cannot_begin_says_why(
    jupyter: JupyterClient, body: object, message: str
) -> None:
    answer = jupyter.http.post("/sessions", json=body)

    assert answer.status_code in (400, 404)
    assert message in answer.json()["message"]
    assert [] == jupyter.http.get("/sessions").json()
