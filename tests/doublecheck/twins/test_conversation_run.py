from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from agentdouble import MCPApp
from doublecheck import Platform, Secret
from doublecheck.client.doubles import serving_double
from doublecheck.comparing.differences import Class
from doublecheck.errors import TargetError
from doublecheck.twins import conversation, conversation_run, document, html_page, scripts, tree
from doublecheck.twins.comparison import Compared, Comparison
from doublecheck.twins.conversation import Topic
from doublecheck.twins.guesses import Guesses

CHEAP = ("probes", "invocations", "what the API server has", "sessions and runs")


def held(one: Platform, two: Platform, *names: str, allow_writes: bool = True) -> Comparison:
    topics = [one_ for one_ in conversation.default(one, two, "tok1") if one_.name in names]
    return conversation_run.run(topics, one, two, allow_writes=allow_writes)


def invocation(**payload: object) -> Topic:
    def talk(platform: Platform) -> None:
        content = json.dumps({"prompt": "x", **payload}).encode()
        headers = {"Content-Type": "application/json", "user_id": "u"}
        platform.request("POST", "/invoke", headers=headers, content=content)

    return Topic("an invocation", ("application",), talk)


def only(comparison: Comparison) -> Compared:
    (call,) = comparison.calls
    return call


def test_a_double_is_the_same_as_itself(one: Platform) -> None:
    """Whatever ids and times its answers have."""
    comparison = held(one, one, *CHEAP)

    assert {Class.SAME: len(comparison.calls)} == comparison.counts()
    assert len(comparison.calls) > 15


def test_how_often_a_tool_was_called_before_is_no_difference(
    one: Platform, three: Platform
) -> None:
    """A tool that runs code counts its cells, and tells the count with an error."""
    with three.mcp() as client:
        client.call("coder", prompt="print(1)")

    comparison = held(one, three, "a tool of MCP")

    assert {Class.SAME: len(comparison.calls)} == comparison.counts()
    assert "/mcp tools/call" in [call.operation for call in comparison.calls]


def test_a_tool_that_both_have_is_looked_for_on_every_page() -> None:
    """A list of large tools has several."""
    app = MCPApp("large")
    for number in range(3):
        app.tool(name=f"b{number}", description="x" * 400_000)(lambda: "x")
    app.tool(name="a")(lambda: "x")
    with serving_double(app) as target, Platform(target) as large:
        found = conversation._callable_tools(large)

    assert {"a", "b0", "b1", "b2"} == found


def test_chosen_alternatives_are_assumed(one: Platform, two: Platform) -> None:
    """Each difference names the unknown that leaves it open; everything else is the same."""
    comparison = held(one, two, *CHEAP)

    assert Class.ASSUMED is comparison.cls
    reasons = {each.because for call in comparison.calls for each in call.differences}
    assert {"U-INVOKE-ENVELOPE", "U-LIST-APPS", "U-SESSION-DELETE"} == reasons


def test_another_answer_diverges(one: Platform, three: Platform) -> None:
    """The text is what the specification says is returned."""
    call = only(conversation_run.run([invocation()], one, three, allow_writes=False))

    assert (Class.DIVERGES, "$", "Hello.", "Good day.") == (
        call.cls,
        call.differences[0].path,
        call.differences[0].double,
        call.differences[0].live,
    )


def test_a_further_field_is_only_live(one: Platform, two: Platform) -> None:
    """Inside of what else is the same."""
    comparison = conversation_run.run([invocation(more=True)], one, two, allow_writes=False)

    assert (
        "only live" in {each.kind for each in only(comparison).differences if each.because is None}
        or Class.ASSUMED is only(comparison).cls
    )


def test_streams_that_are_cut_elsewhere_are_the_same(one: Platform, two: Platform) -> None:
    """What was yielded in other pieces is the same text."""
    comparison = conversation_run.run([invocation(pieces=True)], one, two, allow_writes=False)

    assert Class.SAME is comparison.cls
    sides = (only(comparison).double, only(comparison).live)
    assert [3, 2] == [side.body.count(b"data: ") for side in sides if side is not None]


def test_what_a_stream_relied_on_is_known_from_the_journal(one: Platform) -> None:
    """Its headers left before it was over."""
    session = one.create_session("echo")
    list(one.run_sse(session, "x"))
    (exchange,) = one.exchanges[-1:]
    assert "U-EVENT-FIELDS" not in exchange.headers.get("x-agentdouble-unknowns", "")

    (completed,) = Guesses(one).named([exchange])

    assert "U-EVENT-FIELDS" in completed.headers["x-agentdouble-unknowns"]


def test_nothing_is_created_on_a_live_platform_unasked(one: Platform, two: Platform) -> None:
    """The part says which option allows it."""
    comparison = held(one, two, "probes", "sessions and runs", allow_writes=False)

    probes, sessions = comparison.parts
    assert (4, None) == (len(probes.calls), probes.skipped)
    assert (
        "it creates something on the live platform, which needs --allow-writes (in Python allow_writes=True)"
        == (sessions.skipped)
    )


def test_what_a_platform_does_not_offer_is_not_asked(one: Platform, two: Platform) -> None:
    """By its own declaration."""
    target = dataclasses.replace(two.target, offered=frozenset({"a2a"}))
    with Platform(target) as bare:
        comparison = held(one, bare, "probes")

    assert ["the live platform does not offer application"] == [
        part.skipped for part in comparison.parts
    ]


def test_a_call_that_one_side_does_not_come_to_shows(one: Platform, two: Platform) -> None:
    """One that ends earlier leaves the other's calls alone."""

    def talk(platform: Platform) -> None:
        platform.ping()
        if platform is one:
            platform.health()

    comparison = conversation_run.run([Topic("t", (), talk)], one, two, allow_writes=False)

    assert [Class.SAME, Class.ONLY_DOUBLE] == [call.cls for call in comparison.calls]


def test_a_script_is_said_to_both(one: Platform, two: Platform, tmp_path: Path) -> None:
    """A field that is saved from an answer is each platform's own in the next request."""
    script = tmp_path / "script.toml"
    script.write_text(
        """
        [[step]]
        path = "/apps/echo/users/u1/sessions"
        json = {}
        save = { session = "id" }

        [[step]]
        name = "what is there"
        path = "/apps/echo/users/u1/sessions/{session}"

        [[step]]
        path = "/run"
        [step.json]
        appName = "echo"
        userId = "u1"
        sessionId = "{session}"
        newMessage = { role = "user", parts = [{ text = "hi" }] }
        """
    )

    comparison = conversation_run.run(scripts.read(script), one, two, allow_writes=True)

    assert [(Class.SAME, 200)] * 3 == [
        (call.cls, call.live and call.live.status) for call in comparison.calls
    ]
    assert "what is there" == comparison.parts[1].name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[step]", "is no TOML"),
        ("", "must be [[step]] tables"),
        ("[[step]]\npath = '/x'\n[more]", "must be [[step]] tables"),
        (
            "[[step]]\npath = '/x'\nmethd = 'GET'",
            "step 1 has an unknown key 'methd'. Did you mean method?",
        ),
        ("[[step]]\npath = 7", "step 1: path must be of type str, not 7"),
        ("[[step]]\npath = '/a'\n[[step]]", "step 2 must have either a path or code"),
        ("[[step]]\npath = 'x'", "must begin with a slash"),
    ],
)
def test_a_script_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With the file, the step and the key."""
    script = tmp_path / "script.toml"
    script.write_text(text)

    with pytest.raises(TargetError) as caught:
        scripts.read(script)

    assert said in str(caught.value)
    assert str(script) in str(caught.value)


def test_no_secret_is_shown(two: Platform) -> None:
    """Neither keys that are sent nor those that an answer repeats."""
    secret = "correct-horse-battery"
    target = dataclasses.replace(two.target, api_key=Secret(secret))

    def talk(platform: Platform) -> None:
        headers = {"Content-Type": "application/json"}
        content = json.dumps({"prompt": secret}).encode()
        platform.request("POST", f"/invoke?{secret}", headers=headers, content=content)

    with Platform(target) as keyed:
        comparison = conversation_run.run([Topic("t", (), talk)], keyed, keyed, allow_writes=False)

    told = json.dumps(document.document(comparison)) + html_page.page(comparison)
    assert (False, True) == (secret in told, "invoke?***" in told)


def test_a_page_escapes_what_platforms_say(one: Platform, two: Platform) -> None:
    """It is somebody else's text, and stands in the page as text."""
    topic = Topic("<script>alert(1)</script>", (), lambda one: one.request("GET", "/<b>x"))

    written = html_page.page(conversation_run.run([topic], one, two, allow_writes=False))

    assert "<script" not in written
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in written


def test_a_tree_tells_each_call(one: Platform, three: Platform) -> None:
    """Parts, calls, differences; control characters do not reach the terminal."""
    comparison = conversation_run.run([invocation()], one, three, allow_writes=False)
    console = Console(width=100, file=io.StringIO(), record=True)

    tree.show(comparison, console)

    assert [
        f"double {one.url}, live {three.url}",
        "└── an invocation  diverges",
        "    └── POST /invoke  diverges",
        "        └── $: value",
        '              double "Hello."',
        '              live   "Good day."',
        "",
        "1 calls: 1 diverges.",
    ] == [line.rstrip() for line in console.export_text().splitlines()]
