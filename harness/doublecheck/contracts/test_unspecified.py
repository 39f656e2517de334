"""Observations of what the specification leaves open: they report the behaviour and never fail."""

from __future__ import annotations

from typing import Any

import httpx

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.conftest import Observe
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.sandboxes import Sandbox
from doublecheck.wire import api_server


@clause("PRB-01", unknown="U-PROBE-BODIES")
def test_what_carries_the_text_of_ping(platform: Platform, observe: Observe) -> None:
    """The answer is plain text, a JSON string or an object."""
    observe(f"ping answers {_shape(platform.request('GET', '/ping'))}")


@clause("INV-04", unknown="U-INVOKE-ENVELOPE")
def test_what_wraps_a_returned_string(platform: Platform, observe: Observe) -> None:
    """The answer is the bare JSON string or an object."""
    observe(f"a string arrives as {_shape(wire.invoke(platform, {'do': 'say', 'prompt': 'x'}))}")


@clause("INV-07", unknown="U-INVOKE-ERROR")
def test_what_tells_of_an_exception(platform: Platform, observe: Observe) -> None:
    """The answer has a status, and text or an object."""
    answer = wire.invoke(platform, {"do": "fail", "prompt": "it broke"})

    observe(f"an exception is HTTP {answer.status_code} with {_shape(answer)}")


@clause("API-01", unknown="U-LIST-APPS")
def test_what_lists_the_applications(platform: Platform, observe: Observe) -> None:
    """The answer is an array of names, or an object that contains one."""
    observe(f"applications are listed as {_shape(platform.request('GET', '/list-apps'))}")


@clause("API-06", writes=True, unknown="U-SESSION-DELETE")
def test_what_answers_a_deletion(
    platform: Platform, leftovers: Leftovers, observe: Observe
) -> None:
    """The session exists the first time and no longer the second time."""
    app, user = platform.list_apps()[0], "doublecheck-unspecified"
    leftovers.user(app, user)
    session = platform.create_session(app, user_id=user)
    path = api_server.session_path(app, user, session.id)

    first, second = (platform.request("DELETE", path).status_code for _ in range(2))

    observe(f"a deletion is HTTP {first}, and HTTP {second} when it is repeated")


@clause("CTL-04", unknown="U-ERROR-SHAPE")
def test_what_a_refusal_has(platform: Platform, sandbox: Sandbox, observe: Observe) -> None:
    """The fields of the error are observed."""
    body = {**sandbox.body("1"), "ToolId": "t-doublecheck-nobody-has-this"}
    answer = wire.control_plane(platform, body)

    error = wire.json_of(answer)["ResponseMetadata"]["Error"]
    observe(f"a refusal is HTTP {answer.status_code} with {_listed(error)}")


@clause("SBX-06", writes=True, unknown="U-EXEC-SUCCESS")
def test_what_success_says_of_code_that_raises(
    platform: Platform, sandbox: Sandbox, observe: Observe
) -> None:
    """Success can refer to the call or to the code."""
    _, result = wire.envelope(wire.control_plane(platform, sandbox.body("1 / 0")))
    inner, data = wire.inner(result)

    observe(f"success is {inner.get('success')} with the status {data.get('status')!r}")


def _shape(answer: httpx.Response) -> str:
    """Describe the form of a body in words."""
    try:
        value = answer.json()
    except ValueError:
        return "plain text"
    if isinstance(value, dict):
        return f"an object with {_listed(value)}"
    kinds: dict[type, str] = {list: "an array", str: "a JSON string"}
    return kinds.get(type(value), "another JSON value")


def _listed(value: dict[str, Any]) -> str:
    return ", ".join(sorted(value)) or "no field"
