"""Resources, prompts, completions and change notifications, by the official client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import (
    BlobResourceContents,
    PromptReference,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
)

from agentdouble import Context, Emulator, MCPApp
from agentdouble.errors import DecorationError
from tests.agentdouble.apps.mcp.notes import ERAS, LEGACY, MODERN, ask, error_of, notes

# the newest revision has no resources/subscribe any more
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
both_eras = pytest.mark.parametrize("mode", ERAS)
TEMPLATE = "notes://one/{name}/{number}"


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator(notes(), pool_size=0) as double:
        yield double


@both_eras
def test_offers_are_listed(double: Emulator, mode: str) -> None:
    """With docstrings as descriptions, and without the context."""

    async def lists(client: Client) -> list[Any]:
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        prompts = (await client.list_prompts()).prompts
        return [
            [(res.uri, res.name, res.title, res.description, res.mime_type) for res in resources],
            [(template.uri_template, template.name) for template in templates],
            [
                (item.name, item.title, [(arg.name, arg.required) for arg in item.arguments or ()])
                for item in prompts
            ],
        ]

    assert [
        [
            ("notes://all", "all_notes", "All", "All notes.", "text/markdown"),
            ("notes://bytes", "some_bytes", None, "", "text/plain"),
            ("notes://rounds", "without_rounds", None, "", "text/plain"),
        ],
        [(TEMPLATE, "one_note"), ("notes://rounds/{name}", "in_rounds")],
        [
            ("greet", None, [("name", True), ("times", False)]),
            ("read", "Read", [("uri", True)]),
            ("odd", None, []),
        ],
    ] == ask(double.url, mode, lists)


@both_eras
def test_resources_are_read(double: Emulator, mode: str) -> None:
    """Text, bytes, and JSON by a template, whose variables have types."""

    async def read(client: Client) -> list[str]:
        uris = ["notes://all", "notes://bytes", "notes://one/a%20b/3"]
        read = [(await client.read_resource(uri)).contents[0] for uri in uris]
        return [item.blob if isinstance(item, BlobResourceContents) else item.text for item in read]

    assert ["# All, for ann", "AP8=", '{\n  "name": "a b",\n  "number": 3\n}'] == ask(
        double.url, mode, read
    )


@both_eras
def test_unreadable_resource_is_an_error(double: Emulator, mode: str) -> None:
    """A missing resource and a failing one have different codes; the next is read."""
    failed = f"The resource {TEMPLATE} of notes failed: "
    unreadable = [
        ("notes://none", -32602, "Unknown resource: notes://none"),
        ("notes://one/%2E%2E/1", -32602, "Unknown resource: notes://one/%2E%2E/1"),
        ("notes://one/a/x", -32603, "Error creating resource from template notes://one/a/x"),
        ("notes://one/raise/1", -32603, f"{failed}KeyError: 'no such note'"),
        ("notes://one/exit/1", -32603, f"{failed}SystemExit: 3"),
        ("notes://rounds", -32603, "Error reading resource notes://rounds"),
    ]

    async def read(client: Client) -> list[Any]:
        return [(uri, *await error_of(client.read_resource(uri))) for uri, _, _ in unreadable]

    assert unreadable == ask(double.url, mode, read)


@both_eras
def test_prompts_are_rendered(double: Emulator, mode: str) -> None:
    """From strings, converted to the parameters' types."""

    async def get(client: Client) -> list[Any]:
        greeting = await client.get_prompt("greet", {"name": "ann", "times": "2"})
        note = await client.get_prompt("read", {"uri": "notes://all"})
        messages = [*greeting.messages, *note.messages]
        return [greeting.description, *((entry.role, entry.content.text) for entry in messages)]

    expected = [("user", "Greet ann. Greet ann. "), ("user", "# All, for ann")]
    assert ["Greet somebody.", *expected] == ask(double.url, mode, get)


@both_eras
def test_prompt_errors_have_a_reason(double: Emulator, mode: str) -> None:
    """The caller's mistakes have another code than the prompt's."""
    unrendered: list[tuple[str, dict[str, str], int, str]] = [
        ("nobody", {}, -32602, "Unknown prompt: nobody"),
        ("greet", {}, -32602, "Missing required arguments: {'name'}"),
        ("greet", {"name": "a", "times": "x"}, -32602, "Error rendering prompt greet"),
        ("greet", {"name": "raise"}, -32603, "The prompt greet of notes failed: no such person"),
        ("read", {"uri": "notes://none"}, -32603, "The prompt read of notes failed: Unknown"),
        ("odd", {}, -32602, "Error rendering prompt odd"),
    ]

    async def get(client: Client) -> list[Any]:
        return [await error_of(client.get_prompt(name, args)) for name, args, _, _ in unrendered]

    answer = ask(double.url, mode, get)

    assert [(code, True) for _, _, code, _ in unrendered] == [
        (code, text.startswith(expected))
        for (code, text), (*_, expected) in zip(answer, unrendered, strict=True)
    ]


GREET, ONE = PromptReference(name="greet"), ResourceTemplateReference(uri=TEMPLATE)


@both_eras
def test_arguments_are_completed(double: Emulator, mode: str) -> None:
    """Those of prompts and of templates; an answer has at most a hundred values."""

    async def complete(client: Client) -> list[Any]:
        questions = [(GREET, "name", "a"), (ONE, "number", "b"), (GREET, "name", "none")]
        answers = [await client.complete(ref, _of(name, value)) for ref, name, value in questions]
        many_values = (await client.complete(GREET, _of("name", "many"))).completion
        return [
            *(answer.completion.values for answer in answers),
            len(many_values.values),
            many_values.total,
            many_values.has_more,
        ]

    assert [["aname"], ["bnumber"], [], 100, 150, True] == ask(double.url, mode, complete)


def test_session_is_notified_of_subscribed_resources(double: Emulator) -> None:
    """Until it unsubscribes; a missing resource cannot be subscribed to."""
    events = []

    async def hear(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            events.append(message.params.uri)

    async def watch(client: Client) -> tuple[int, str]:
        await client.subscribe_resource("notes://one/a/1")
        while not events:  # the client opens that stream when it comes to it
            await client.call_tool("change", {"uri": "notes://all"})
            await client.call_tool("change", {"uri": "notes://one/a/1"})
        await client.unsubscribe_resource("notes://one/a/1")
        await client.unsubscribe_resource("notes://none")
        return await error_of(client.subscribe_resource("notes://none"))

    refused = ask(double.url, LEGACY, watch, message_handler=hear)

    assert (-32602, "Unknown resource: notes://none") == refused
    assert {"notes://one/a/1"} == set(events)


def test_listener_is_notified_of_changes(double: Emulator) -> None:
    """In the version without sessions, on a requested stream."""

    async def listen(client: Client) -> Any:
        async with client.listen(resource_subscriptions=["notes://all"]) as subscription:
            await client.call_tool("change", {"uri": "notes://all"})
            return await subscription.__anext__()

    assert "notes://all" == ask(double.url, MODERN, listen).uri


def _generator() -> Iterator[str]:
    yield "x"


async def _two_contexts(a: Context, b: Context) -> str:
    return f"{a}{b}"


@pytest.mark.parametrize(
    ("decorate", "reason"),
    [
        (lambda app: app.resource("all")(lambda: ""), "takes an address with a scheme"),
        (lambda app: app.resource(lambda: ""), "takes an address with a scheme"),
        (lambda app: app.resource("a://{b}", name="x")(lambda c: c), "Mismatch between URI param"),
        (lambda app: app.resource("a://{b")(_generator), "a function that returns its result"),
        (lambda app: app.resource("a://{b", name="x")(lambda b: b), "Unclosed expression"),
        (lambda app: app.resource("a://b")(lambda: ""), "need|must provide a name"),
        (lambda app: app.resource("a://b")(_two_contexts), "has 2: a, b"),
        (lambda app: app.prompt(_generator), "a function that returns its result"),
        (lambda app: app.prompt(dict), "a function that returns its result"),
        (lambda app: app.prompt(lambda: ""), "must provide a name"),
        (lambda app: app.completion(lambda ref: []), r"takes 'def f\(ref, argument, context\)'"),
        (lambda app: app.resource("x://y", name="n")(lambda: ""), "already has a resource 'x://y'"),
        (lambda app: app.prompt(name="p")(lambda: ""), "already has a prompt 'p'"),
        (
            lambda app: app.completion(lambda a, b, c: []),
            "already has a completion 'for arguments'",
        ),
    ],
)
def test_invalid_offers_are_refused_at_decoration(decorate: Any, reason: str) -> None:
    """The error names the function and says what is wrong."""
    app = MCPApp("taken")
    app.resource("x://y", name="first")(lambda: "")
    app.prompt(name="p")(lambda: "")
    if "already" in reason:
        app.completion(lambda a, b, c: [])

    with pytest.raises(DecorationError, match=reason):
        decorate(app)


def _of(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}
