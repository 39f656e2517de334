"""Run a conversation with two platforms and report its differences."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from rich.console import Console

from doublecheck import DoubleCheckError, Platform, Secret, Target
from doublecheck.client.doubles import serving_double
from doublecheck.compare import conversation, rendering
from doublecheck.compare.conversation import Topic
from doublecheck.compare.differences import Class, Compared, Comparison, ConversationPart
from doublecheck.compare.page import render as page_of
from doublecheck.compare.run import run
from tests.doublecheck.compare.conftest import CHOSEN, application
from tests.doublecheck.compare.liar import LIES, Liar, seen_as_live, serving_liar

CHEAP = ("probes", "invocations", "API server lists", "sessions and runs")
KEYS = {"access_key": "AKLTtwin", "secret_key": "c2VjcmV0"}


def compare(base: Platform, two: Platform, *names: str, allow_writes: bool = True) -> Comparison:
    topics = [topic for topic in conversation.default(base, two, "tok1") if topic.name in names]
    return run(topics, base, two, allow_writes=allow_writes)


def invoke(base: Platform, two: Platform, **payload: object) -> Compared:
    def talk(platform: Platform) -> None:
        content = json.dumps({"prompt": "x", **payload}).encode()
        headers = {"Content-Type": "application/json", "user_id": "u"}
        platform.request("POST", "/invoke", headers=headers, content=content)

    topic = Topic("an invocation", ("application",), talk)
    (call,) = run([topic], base, two, allow_writes=False).calls
    return call


def test_a_double_is_the_same_as_itself(base: Platform) -> None:
    """Different ids and times do not matter."""
    comparison = compare(base, base, *CHEAP)

    assert {Class.SAME: len(comparison.calls)} == comparison.counts()
    assert len(comparison.calls) > 15


def test_chosen_alternatives_are_assumed(base: Platform, two: Platform) -> None:
    """Each difference names its unknown; everything else is the same."""
    comparison = compare(base, two, *CHEAP)

    assert Class.ASSUMED is comparison.cls
    reasons = {difference.because for call in comparison.calls for difference in call.differences}
    assert {f"{unknown} = {answer}" for unknown, answer in CHOSEN.items()} == reasons


def test_a_different_text_diverges_but_different_chunks_do_not(
    base: Platform, two: Platform, three: Platform
) -> None:
    differs, streamed = invoke(base, three), invoke(base, two, pieces=True)

    assert Class.DIVERGES is differs.cls
    assert ["$: double 'Hello.', live 'Good day.'"] == [str(item) for item in differs.differences]
    sides = (streamed.double, streamed.live)
    assert [3, 2] == [side.body.count(b"data: ") for side in sides if side is not None]
    assert Class.SAME is streamed.cls


def test_unknowns_of_a_stream_come_from_the_journal(base: Platform) -> None:
    """The headers are sent before the stream ends."""

    def talk(platform: Platform) -> None:
        list(platform.agents.run_sse(platform.agents.create("echo"), "x"))

    comparison = run([Topic("a stream", (), talk)], base, base, allow_writes=False)

    (_, stream) = comparison.calls
    assert stream.double is not None
    assert "U-EVENT-FIELDS" in stream.double.headers["x-agentdouble-unknowns"]


def test_parts_that_cannot_run_are_skipped_with_a_reason(base: Platform, two: Platform) -> None:
    """The platform may lack permission or the surface."""
    reading = compare(base, two, "probes", "sessions and runs", allow_writes=False)
    with Platform(dataclasses.replace(two.target, offered=frozenset({"a2a"}))) as bare:
        refused = compare(base, bare, "probes")

    assert [
        None,
        "it creates something on the live platform, which needs --allow-writes (in Python allow_writes=True)",
        "the live platform does not offer application",
    ] == [part.skipped for part in (*reading.parts, *refused.parts)]


def test_a_call_on_one_side_only_is_reported(base: Platform, two: Platform) -> None:
    """The other calls are still matched."""

    def talk(platform: Platform) -> None:
        platform.ping()
        if platform is base:
            platform.health()

    comparison = run([Topic("t", (), talk)], base, two, allow_writes=False)

    assert [Class.SAME, Class.ONLY_DOUBLE] == [call.cls for call in comparison.calls]


def test_secrets_are_redacted(two: Platform) -> None:
    """This includes keys in requests and keys that an answer repeats."""
    secret = "correct-horse-battery"

    def talk(platform: Platform) -> None:
        headers = {"Content-Type": "application/json"}
        content = json.dumps({"prompt": secret}).encode()
        platform.request("POST", f"/invoke?{secret}", headers=headers, content=content)

    with Platform(dataclasses.replace(two.target, api_key=Secret(secret))) as keyed:
        comparison = run([Topic("t", (), talk)], keyed, keyed, allow_writes=False)

    output = json.dumps(rendering.document(comparison)) + page_of(comparison)
    assert (False, True) == (secret in output, "invoke?***" in output)


def test_pages_and_notebooks_escape_platform_answers(base: Platform, two: Platform) -> None:
    """A notebook shows the page in a sandboxed frame."""
    topic = Topic("<script>alert(1)</script>", (), lambda platform: platform.request("GET", "/<b>"))

    comparison = run([topic], base, two, allow_writes=False)

    page = page_of(comparison)
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    bundle = comparison._repr_mimebundle_()
    assert "<Comparison same: 1 call, 1 same>" == bundle["text/plain"]
    assert ("<iframe sandbox=" in bundle["text/html"], "<script" in bundle["text/html"]) == (
        True,
        False,
    )


def test_the_tree_shows_parts_calls_and_differences(base: Platform, three: Platform) -> None:
    """A summary line follows."""
    comparison = Comparison(base.url, three.url, (_part(invoke(base, three)),))
    console = Console(width=100, file=io.StringIO(), record=True)

    rendering.show(comparison, console)

    assert [
        f"double {base.url}, live {three.url}",
        "└── an invocation  diverges",
        "    └── POST /invoke  diverges",
        "        └── $: value",
        '              double "Hello."',
        '              live   "Good day."',
        "",
        "1 call: 1 diverges.",
    ] == [line.rstrip() for line in console.export_text().splitlines()]


def _part(call: Compared) -> ConversationPart:
    return ConversationPart("an invocation", (call,))


@pytest.fixture(scope="module")
def honest() -> Iterator[Target]:
    with serving_double(application("Hello."), **KEYS) as target:
        yield target


@pytest.fixture(scope="module")
def hidden() -> Iterator[Target]:
    """The double behind the lying proxy."""
    with serving_double(application("Hello."), **KEYS) as target:
        yield target


@pytest.fixture(scope="module")
def liar(hidden: Target) -> Iterator[Liar]:
    with serving_liar(hidden.url) as liar:
        yield liar


def _calls(platform: Platform) -> None:
    """Make the calls that the lies concern; a lie may break the answer."""
    for code, name in (("x = 6 * 7; print(x)", "a"), ("print(x + 1)", "a"), ("print(1)", "b")):
        with suppress(DoubleCheckError):
            platform.run_code(code, session_id=name)
    session = platform.agents.create("echo")
    platform.agents.run(session, "one")
    with suppress(DoubleCheckError):
        list(platform.agents.run_sse(session, "two", streaming=True))
    platform.agents.get("echo", session.id)
    platform.agents.delete(session)


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("lie", [None, *LIES])
def test_a_lie_diverges_and_the_reports_show_its_path(
    honest: Target, hidden: Target, liar: Liar, lie: str | None
) -> None:
    """Without a lie, everything is the same."""
    topic = Topic("calls", (), _calls, does="runs code")
    with (
        Platform(honest) as double,
        Platform(seen_as_live(hidden, liar)) as live,
        liar.lying(LIES[lie][0] if lie else lambda *_: None),
    ):
        comparison = run([topic], double, live, allow_writes=True)

    places = {
        (call.operation, difference.path)
        for call in comparison.calls
        for difference in call.differences
        if not difference.cls.harmless
    }
    if lie is None:
        assert ({Class.SAME: 8}, set()) == (comparison.counts(), places)
        return
    _, operation, path = LIES[lie]
    assert not comparison.cls.harmless
    assert (operation, path) in places
    console = Console(width=300, file=io.StringIO(), record=True)
    rendering.show(comparison, console)
    assert f"{path}: " in console.export_text()
    assert path in page_of(comparison).replace("&quot;", '"')
    assert path in {
        difference["path"]
        for part in rendering.document(comparison)["parts"]
        for call in part["calls"]
        for difference in call["differences"]
    }


DENIED = {"ResponseMetadata": {"Error": {"Code": "AccessDenied", "Message": "no"}}}


def test_a_session_that_cannot_be_removed_is_reported(
    honest: Target, hidden: Target, liar: Liar
) -> None:
    """The report has its name and its platform."""
    topic = Topic("code", (), lambda side: side.run_code("1", session_id="kept"), does="runs code")
    with (
        Platform(honest) as double,
        Platform(seen_as_live(hidden, liar)) as live,
        liar.lying(lambda name, _nth, _document: DENIED if name == "DeleteSession" else None),
    ):
        comparison = run([topic], double, live, allow_writes=True)

    assert f"agent_anonymous_kept could not be removed from {liar.url}" == (
        comparison.parts[-1].skipped
    )


SESSIONS = "sessions and runs"
ALTERNATIVES = [
    ("U-INVOKE-ENVELOPE", "object", "invocations"),
    ("U-PROBE-BODIES", "text", "probes"),
    ("U-PROBE-BODIES", "json-string", "probes"),
    ("U-PROBE-ERROR", "absent-404", "probes"),
    ("U-HEALTH-CLASH", "api-server", "probes"),
    ("U-LIST-APPS", "detailed", "API server lists"),
    ("U-SESSION-FIELDS", "id-only", SESSIONS),
    ("U-EVENT-FIELDS", "content-only", SESSIONS),
    ("U-SESSION-DUPLICATE", "400", SESSIONS),
    ("U-SESSION-DUPLICATE", "existing", SESSIONS),
    ("U-SESSION-LIST", "ids", SESSIONS),
    ("U-SESSION-DELETE", "204", SESSIONS),
    ("U-EXEC-SUCCESS", "true", "code in the sandbox"),
    ("U-MCP-ARGUMENTS", "refused", "MCP"),
    ("U-A2A-TASK", "0.3", "the agent card"),
    ("U-WEBHOOKS", "none", "the agent card"),
]


@pytest.fixture(scope="module")
def changing() -> Iterator[Target]:
    with serving_double(application("Hello.")) as target:
        yield target


@pytest.mark.slow
@pytest.mark.parametrize(("unknown", "answer", "topic"), ALTERNATIVES)
def test_an_alternative_is_assumed(
    base: Platform, changing: Target, unknown: str, answer: str, topic: str
) -> None:
    """The unknown explains every difference."""
    with Platform(changing) as platform:
        platform.request(
            "PUT", "/_emulator/unknowns", content=json.dumps({unknown: answer}).encode()
        ).raise_for_status()
    with Platform(dataclasses.replace(changing, kind="live", name="live")) as live:
        token = f"{unknown}-{answer}".lower().replace(".", "-")
        topics = [item for item in conversation.default(base, live, token) if item.name == topic]
        comparison = run(topics, base, live, allow_writes=True, names=(token,))

    differences = [difference for call in comparison.calls for difference in call.differences]
    assert Class.ASSUMED is comparison.cls, differences
    assert {f"{unknown} = {answer}"} == {difference.because for difference in differences}
