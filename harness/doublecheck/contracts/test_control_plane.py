"""Checks of InvokeTool on the wire (CTL)."""

from __future__ import annotations

import functools
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

from agentdouble.core.invoke_tool import ACTION, VERSION
from agentdouble.core.signing import Credentials
from doublecheck.client._sync.platform import Platform
from doublecheck.client.doubles import serving_double
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.conftest import START_WITHIN_S
from doublecheck.contracts.engine import at_once, for_each
from doublecheck.contracts.forgeries import OTHER_ACTIONS, forged, without_signature
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.sandboxes import (
    COMMAND,
    JAVASCRIPT,
    PYTHON,
    TTL_S,
    TYPES_OF_DATA,
    CheckSandbox,
    succeeded,
)
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.contracts.verdicts import not_observable
from doublecheck.target import pytest_options
from doublecheck.target.facts import variable
from doublecheck.wire.calls import Request

METADATA = ("RequestId", "Action", "Version", "Service", "Region")
RESULT = ("ToolId", "UserSessionId", "SessionId", "Endpoint", "InternalEndpoint", "Result")
REFUSED_NAMES = {
    "action": ("NoSuchAction", "RunTheTool", ACTION.lower(), f"{ACTION}s"),
    "version": ("1999-12-31", "2025-10-29", "2025-10-31", "2999-01-01", "1"),
}
TEXT, NULLABLE_TEXT = ("str",), ("str", "NoneType")
OUTPUT = {
    "output_type": TEXT,
    "name": NULLABLE_TEXT,
    "text": NULLABLE_TEXT,
    "data": ("dict", "NoneType"),
    "metadata": ("dict",),
    "execution_count": ("int", "NoneType"),
    "ename": NULLABLE_TEXT,
    "evalue": NULLABLE_TEXT,
    "traceback": ("list", "str", "NoneType"),
}
# Each of them runs twice in one session, so that the second result is as complete as the first.
VALUED, SILENT = "print('hello')\n6 * 7", "nothing = None"
FAILING = ("print('before')\n1 / 0", "throw new Error('on purpose')")
IN_PYTHON = tuple((code, PYTHON) for code in (VALUED, FAILING[0], SILENT))
CODES = (*IN_PYTHON, ("console.log('hello')", JAVASCRIPT), (FAILING[1], JAVASCRIPT))
KINDS = {"code": IN_PYTHON, "command": (("echo hello", COMMAND), ("false", COMMAND))}


@clause("CTL-01", writes=True)
@pytest.mark.parametrize("kind", KINDS)
def test_the_envelope_is_complete(platform: Platform, sandbox: CheckSandbox, kind: str) -> None:
    """Every field of 2.8 is a string that matches the request; every answer has a new request id."""
    boxes = (sandbox, sandbox.with_session("Other-and_longer-0123456789"))
    sent = [(box, box.body(*code)) for code in KINDS[kind] for box in boxes]
    request_ids = []

    alone = [_invoked(platform, body) for _, body in sent]
    request = wire.signed(platform, sent[0][1])
    for accepted in wire.ACCEPTED:
        headers = {**request.headers, "Accept": accepted}
        alone.append(platform.send(replace(request, headers=headers)))
    alone.append(wire.send_in_parts(platform, request))
    sent += [sent[0]] * (len(alone) - len(sent))
    calls = [functools.partial(_invoked, platform, body) for _, body in sent]
    together = at_once(calls, busy=(pytest.fail.Exception,))
    for (box, _), answer in zip(sent * 2, (*alone, *together), strict=True):
        metadata, result = wire.envelope(answer)
        _require_types(metadata, dict.fromkeys(METADATA, "str"), "ResponseMetadata")
        _require_types(result, dict.fromkeys(RESULT, "str"), "Result")
        expected = {
            "Action": ACTION,
            "Version": VERSION,
            "ToolId": platform.target.sandbox_tool(),
            "UserSessionId": box.user_session_id,
        }
        told = {name: {**metadata, **result}[name] for name in expected}
        assert expected == told, f"the envelope is wrong {instead(told, expected)}"
        request_ids.append(metadata["RequestId"])
    assert len(request_ids) == len(set(request_ids)), "two answers have the same RequestId"


@clause("CTL-02", writes=True)
def test_the_inner_json_is_complete(platform: Platform, sandbox: CheckSandbox) -> None:
    """Result.Result is a JSON string with every field of 2.7, whatever the code's outcome."""
    for code, language in CODES * 2:
        inner, data = _inner(platform, sandbox, code, language)

        _require_types(inner, {"success": "bool", "message": "str"}, "the inner JSON")
        _require_types(data, TYPES_OF_DATA, "data")
        assert code == data["code"], f"code is {instead(data['code'], code)}"
        outcome = (inner["success"], data["status"])
        assert code in FAILING or (True, "ok") == outcome, f"code that ran is {short(outcome)}"
        kernel = data["kernel_name"]
        is_own = language == PYTHON or kernel not in ("python3", "python")
        assert is_own, f"JavaScript has the kernel_name {kernel!r}"
        for output in data["outputs"]:
            types = wire.types(output, OUTPUT)
            wrong = [name for name, allowed in OUTPUT.items() if types.get(name) not in allowed]
            assert [] == wrong, f"fields of a wrong type: {listed(wrong)} in {short(output)}"
        others = [it for it in data["outputs"] if it["output_type"] != "stream"]
        contents = [name for it in others for name in ("ename", "data") if it[name]]
        expected = {VALUED: ["data"], SILENT: []}.get(code, contents)
        assert expected == contents, f"the outputs of {short(code)} have {listed(contents)}"
        has_error = code not in FAILING or "ename" in contents[-2:]
        assert has_error, f"no output of {short(code)} has an ename at the end"


@clause("CTL-02", writes=True)
@for_each(text=inputs.texts())
def test_the_executed_code_is_told(platform: Platform, sandbox: CheckSandbox, text: str) -> None:
    """``code`` equals the code that was sent, with any characters, and ``status`` is ok."""
    code = f"\n kept = {text!r}  \n# {text.splitlines()}\n\n".replace("\n ", "\n")

    inner, data = _inner(platform, sandbox, code)

    assert code == data["code"], f"code is {instead(data['code'], code)}"
    outcome = (inner["success"], data["status"])
    assert (True, "ok") == outcome, f"code that ran is {short(outcome)}"


@clause("CTL-02", writes=True)
def test_every_output_is_told(platform: Platform, sandbox: CheckSandbox) -> None:
    """``outputs`` has each of many values, in order."""
    code = f"from IPython.display import display\nfor n in range({inputs.MANY}): display(n)"

    _, data = _inner(platform, sandbox, code)

    values = [output["data"].get("text/plain") for output in data["outputs"] if output.get("data")]
    expected = inputs.many("{}")
    assert expected == values, f"the outputs are {instead(values, expected)}"


@clause("CTL-04")
@pytest.mark.parametrize("language", [PYTHON, COMMAND])
def test_an_unknown_tool_is_refused(
    platform: Platform, sandbox: CheckSandbox, language: str
) -> None:
    """Unknown tool ids are refused, including those that are similar to a known one."""
    id_ = platform.target.sandbox_tool()
    body = sandbox.body("1" if language == PYTHON else "true", language)
    near = {id_[:-1], f"{id_}0", id_.upper(), f"t-{id_[2:].swapcase()}", id_[2:], f" {id_}"}
    if platform.target.kind == "double" or platform.target.allow_writes:
        _invoked(platform, body)

    for unknown in sorted({"t-doublecheck-nobody-has-this", "nobody", ""} | near - {id_}):
        wire.refusal(wire.control_plane(platform, {**body, "ToolId": unknown}))


@clause("CTL-05", writes=True)
@pytest.mark.parametrize("kind", KINDS)
def test_ids_have_their_shape(platform: Platform, sandbox: CheckSandbox, kind: str) -> None:
    """SessionId has the form ``s-<id>`` and ToolId ``t-<id>``, in every call."""
    for box in (sandbox, sandbox.with_session("second")):
        for code, language in KINDS[kind]:
            _, result = wire.envelope(_invoked(platform, box.body(code, language)))

            for name, shape in (("SessionId", r"s-\S+"), ("ToolId", r"t-\S+")):
                id_ = str(result.get(name))
                assert re.fullmatch(shape, id_), f"{name} does not have its shape: {id_!r}"


@clause("CTL-06")
@pytest.mark.parametrize("field", REFUSED_NAMES)
def test_an_unknown_action_or_version_is_refused(
    platform: Platform, sandbox: CheckSandbox, field: str
) -> None:
    """The error names the action or the version, even if it is similar to a known one."""
    for name in REFUSED_NAMES[field]:
        answer = wire.control_plane(platform, sandbox.body("1"), **{field: name})
        assert name in wire.refusal(answer), f"the error does not name {name!r}"


@pytest.fixture
def encrypted(platform: Platform, request: pytest.FixtureRequest) -> Iterator[Platform]:
    """The platform over https.

    If it does not offer https, a second double is started with --tls.
    """
    address = platform.target.control_plane
    if address.startswith("https"):
        yield platform
        return
    if not pytest_options.plan_of(request.config).in_process:
        not_observable(f"{address} does not speak https")
    with (
        serving_double(tls=True, start_timeout_s=START_WITHIN_S) as target,
        Platform(target) as second,
    ):
        yield second


@clause("CTL-08", writes=True)
def test_agent_libraries_of_all_versions_can_call(
    encrypted: Platform, leftovers: Leftovers
) -> None:
    """Version 0.2.15 sends a bare session id and no Ttl over https; later ones send both."""
    session_id = uuid.uuid4().hex
    leftovers.sandbox(session_id)
    bare = {"UserSessionId": session_id}
    derived = {"UserSessionId": f"agent_doublecheck_{session_id}", "Ttl": TTL_S}

    for named in (bare, derived):
        payload = {"code": "print('hello')", "timeout": 30, "kernel_name": "python3"}
        body = {
            "ToolId": encrypted.target.sandbox_tool(),
            "OperationType": "RunCode",
            "OperationPayload": json.dumps(payload),
            **named,
        }
        _, result = wire.envelope(_invoked(encrypted, body))

        _, data = wire.inner(result)
        printed = "".join(output.get("text") or "" for output in data["outputs"])
        assert "hello\n" == printed, f"the code prints {short(printed)}"


def _invoked(platform: Platform, body: Mapping[str, Any]) -> httpx.Response:
    """Return the answer to InvokeTool. Fail if it is refused; skip if commands are refused."""
    answer = wire.control_plane(platform, body)
    if answer.is_success:
        return answer
    if body["OperationType"] == "ExecBash":
        not_observable(f"InvokeTool does not run commands: {answer.text}")
    pytest.fail(f"refused: HTTP {answer.status_code} {answer.text}")


def _require_types(document: Mapping[str, Any], types: Mapping[str, str], where: str) -> None:
    expected, actual = dict(types), wire.types(document, types)
    assert expected == actual, f"{where} has fields {instead(actual, expected)}"


def _inner(
    platform: Platform, sandbox: CheckSandbox, code: str, language: str = PYTHON
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON of 2.7 for code, and its data."""
    _, result = wire.envelope(_invoked(platform, sandbox.body(code, language)))
    return wire.inner(result)


@clause("CTL-03")
def test_every_forged_signature_is_refused(platform: Platform, sandbox: CheckSandbox) -> None:
    """Requests with a wrong key, secret, signature or signed part are all refused."""
    accepted = _let_in(platform, forged(platform, sandbox.body("1"), sandbox.body("2")))
    assert {} == accepted, f"accepted with a wrong signature: {listed(accepted)}"


@clause("CTL-03", writes=True)
def test_every_operation_needs_a_signature(platform: Platform, sandbox: CheckSandbox) -> None:
    """Every operation in a running session needs a signature, and a refused one has no effect."""
    credentials = platform.target.address().credentials
    wrong = replace(credentials, secret_key=credentials.secret_key[::-1])

    _require_refused(platform, sandbox, wrong)
    _require_refused(platform, sandbox, credentials, without_signature)


@clause("CTL-07")
def test_a_key_without_full_access_is_refused(platform: Platform, sandbox: CheckSandbox) -> None:
    """Every operation is refused, even when repeated, although the signature is correct."""
    restricted = _restricted(platform)

    for _ in range(2):
        requests = _operations(platform, sandbox, "s-doublecheck-nobody", restricted)
        accepted = _let_in(platform, requests)
        assert {} == accepted, f"accepted without full access: {listed(accepted)}"
    wrong = replace(restricted, secret_key=restricted.secret_key[::-1])
    refusals = [
        wire.refusal(wire.control_plane(platform, sandbox.body("1"), credentials=pair))
        for pair in (restricted, wrong)
    ]
    if refusals[0] == refusals[1]:
        not_observable(
            "a wrong secret gives the same error, so nothing shows that the platform knows "
            "the key (U-ERROR-SHAPE)"
        )


@clause("CTL-07", writes=True)
def test_a_key_without_full_access_changes_nothing(
    platform: Platform, sandbox: CheckSandbox
) -> None:
    """A refused operation has no effect, not even in a running session."""
    _require_refused(platform, sandbox, _restricted(platform))


def _require_refused(
    platform: Platform,
    sandbox: CheckSandbox,
    credentials: Credentials,
    change: Callable[[Request], Request] = lambda request: request,
) -> None:
    """Fail if an operation in a running session is not refused, or has an effect."""
    first = succeeded(sandbox.run("count = 1"))
    requests = _operations(platform, sandbox, first.session_id, credentials)

    accepted = _let_in(platform, {name: change(it) for name, it in requests.items()})
    assert {} == accepted, f"accepted although it must be refused: {listed(accepted)}"
    assert "1\n" == sandbox.run("print(count)").stdout, "a refused request changed the session"


def _operations(
    platform: Platform, sandbox: CheckSandbox, session_id: str, credentials: Credentials
) -> dict[str, Request]:
    """Return a signed request for each operation, by name."""

    def signed(body: Mapping[str, Any], action: str = ACTION) -> Request:
        return wire.signed(platform, body, credentials=credentials, action=action)

    codes = {PYTHON: "count = globals().get('count', 0) + 1", JAVASCRIPT: "1", COMMAND: "true"}
    tool = {"ToolId": platform.target.sandbox_tool()}
    session = {**tool, "SessionId": session_id}
    return {
        **{f"InvokeTool of {it}": signed(sandbox.body(code, it)) for it, code in codes.items()},
        **{
            name: signed(tool if name in ("ListSessions", "GetTool") else session, name)
            for name in OTHER_ACTIONS
        },
    }


def _let_in(platform: Platform, requests: Mapping[str, Request]) -> dict[str, str]:
    """Send requests that must be refused. Return those that are not."""
    wrong = {}
    for name, request in requests.items():
        try:
            wire.refusal(platform.send(request))
        except AssertionError as error:
            wrong[name] = str(error).splitlines()[0]
    return wrong


def _restricted(platform: Platform) -> Credentials:
    credentials = platform.target.restricted
    if credentials is None:
        names = " and ".join(map(variable, ("restricted_access_key", "restricted_secret_key")))
        pytest.skip(f"needs a key pair without the full-access permission: set {names}")
    return credentials
