"""Checks of who may call the control plane (CTL-03, CTL-07)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.signing import Credentials
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.forgeries import OTHER_ACTIONS, Forger, without_signature
from doublecheck.contracts.sandboxes import COMMAND, JAVASCRIPT, Sandbox, printed, succeeded
from doublecheck.contracts.verdicts import Verdict
from doublecheck.target.facts import variable
from doublecheck.wire.calls import Request

COUNT = "count = globals().get('count', 0) + 1"
COUNTED = "print(count)"
NOBODY = "s-doublecheck-nobody"
CODES = ((COUNT, "python3"), ("1", JAVASCRIPT), ("true", COMMAND))


@clause("CTL-03")
def test_every_forged_signature_is_refused(platform: Platform, sandbox: Sandbox) -> None:
    """Each key, secret, signature and signed part that is not right is refused."""
    forger = Forger(platform, sandbox.body("1"), other_body=sandbox.body("2"))

    assert {} == _let_in(platform, forger.all())


@clause("CTL-03", writes=True)
def test_a_wrong_signature_stays_refused(platform: Platform, sandbox: Sandbox) -> None:
    """It is as wrong when it is sent again, also after a right one, and nothing runs."""
    known = platform.target.address().credentials
    wrong = replace(known, secret_key=known.secret_key[::-1])
    succeeded(sandbox.run(COUNT))

    for _ in range(3):
        wire.refusal(wire.control_plane(platform, sandbox.body(COUNT), credentials=wrong))
    assert "1\n" == printed(sandbox.run(COUNTED)), "code of a refused request has run"
    wire.refusal(wire.control_plane(platform, sandbox.body(COUNT), credentials=wrong))


@clause("CTL-03", writes=True)
def test_every_operation_needs_a_signature(platform: Platform, sandbox: Sandbox) -> None:
    """Code of both languages, commands, and the other actions, in a session that runs already."""
    first = succeeded(sandbox.run(COUNT))
    signed = _operations(platform, sandbox, first.session_id, credentials=None)

    unsigned = {what: without_signature(request) for what, request in signed.items()}

    assert {} == _let_in(platform, unsigned)
    assert "1\n" == printed(sandbox.run(COUNTED)), "the session was touched without a signature"


@clause("CTL-07")
def test_a_key_without_full_access_is_refused(platform: Platform, sandbox: Sandbox) -> None:
    """For every operation, the second time too, although its signature is right."""
    restricted = _restricted(platform)

    for _ in range(2):
        asked = _operations(platform, sandbox, NOBODY, credentials=restricted)
        assert {} == _let_in(platform, asked)
    _is_known(platform, sandbox, restricted)


@clause("CTL-07", writes=True)
def test_a_key_without_full_access_changes_nothing(platform: Platform, sandbox: Sandbox) -> None:
    """What is refused is not done either, in a session that runs already."""
    restricted = _restricted(platform)
    first = succeeded(sandbox.run(COUNT))

    _let_in(platform, _operations(platform, sandbox, first.session_id, credentials=restricted))

    assert "1\n" == printed(sandbox.run(COUNTED)), "code of a refused request has run"


def _operations(
    platform: Platform, sandbox: Sandbox, session_id: str, credentials: Credentials | None
) -> dict[str, Request]:
    """Return a signed request for each operation, by its name."""

    def signed(body: Mapping[str, Any], **how: Any) -> Request:
        return wire.signed(platform, body, credentials=credentials, **how)

    runs = {f"InvokeTool of {name}": signed(sandbox.body(code, name)) for code, name in CODES}
    tool = {"ToolId": platform.target.sandbox_tool()}
    session = {**tool, "SessionId": session_id}
    others = {
        action: signed(tool if action in ("ListSessions", "GetTool") else session, action=action)
        for action in OTHER_ACTIONS
    }
    return runs | others


def _let_in(platform: Platform, requests: Mapping[str, Request]) -> dict[str, str]:
    """Send requests that are to be refused; return those that are not."""
    wrong = {}
    for what, request in requests.items():
        try:
            wire.refusal(platform.send(request))
        except AssertionError as error:
            wrong[what] = str(error).splitlines()[0]
    return wrong


def _restricted(platform: Platform) -> Credentials:
    known = platform.target.restricted
    if known is None:
        pytest.skip(
            "needs a key pair without the full-access permission: set "
            f"{variable('restricted_access_key')} and {variable('restricted_secret_key')}"
        )
    return known


def _is_known(platform: Platform, sandbox: Sandbox, known: Credentials) -> None:
    """Skip unless the refusal differs from that of a wrong secret, so that it is another one."""
    wrong = replace(known, secret_key=known.secret_key[::-1])
    refusals = [
        wire.refusal(wire.control_plane(platform, sandbox.body("1"), credentials=one))
        for one in (known, wrong)
    ]
    if refusals[0] == refusals[1]:
        pytest.skip(
            f"{Verdict.NOT_OBSERVABLE.value}: a wrong secret is refused in the same words, so "
            "nothing shows that the platform knows the key (U-ERROR-SHAPE)"
        )
