"""Mutants that change values: types of numbers, long lists, many keys, deep nesting, repetition."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from typing import Any

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.hosting import TOOLS
from tests.mutants import Witnessed, agents, application, protocols, wire, witnesses
from tests.mutants.changes import OfValue, at, leaves
from tests.mutants.wire import Change
from tests.mutants.witnesses import numbered, require

# ---- values


def true_as_1(value: Any) -> Any:
    """Read true as 1."""
    return 1 if value is True else value


def whole(value: Any) -> Any:
    """Read a float without a fraction as an integer, but keep -0.0."""
    is_whole = type(value) is float and value.is_integer() and abs(value) < 1e15
    return int(value) if is_whole and str(value) != "-0.0" else value


def unsigned_zero(value: Any) -> Any:
    """Read -0.0 as 0.0."""
    return 0.0 if type(value) is float and value == 0 else value


def as_float(value: Any) -> Any:
    """Read an integer as a float."""
    return float(value) if type(value) is int and abs(value) < 2**53 else value


def as_text(value: Any) -> Any:
    """Read a number as a text."""
    return json.dumps(value) if type(value) in (int, float) else value


def empty_as_null(value: Any) -> Any:
    """Read an empty text as null."""
    return None if value == "" else value


def null_as_empty(value: Any) -> Any:
    """Read null as an empty text."""
    return "" if value is None else value


def in_lists(change: OfValue, depth: int = 1) -> OfValue:
    """Change the leaves that are in this many lists, one inside the other, or more."""

    def deep(value: Any, lists: int) -> Any:
        if isinstance(value, list):
            return [deep(item, lists + 1) for item in value]
        if isinstance(value, dict):
            return {name: deep(item, lists) for name, item in value.items()}
        return change(value) if lists >= depth else value

    return lambda value: deep(value, 0)


def of_containers(
    of_list: Callable[[list[Any]], list[Any]], of_dict: Callable[[Any], Any] = dict
) -> OfValue:
    """Change lists and objects at any depth."""

    def deep(value: Any) -> Any:
        if isinstance(value, list):
            return of_list([deep(item) for item in value])
        if isinstance(value, dict):
            return of_dict({name: deep(item) for name, item in value.items()})
        return value

    return deep


def short_lists(length: int) -> OfValue:
    """Cut lists."""
    return of_containers(lambda some: some[:length])


def few_fields(count: int) -> OfValue:
    """Lose the fields of an object beyond this many."""
    return of_containers(list, lambda some: dict([*some.items()][:count]))


def unique(some: list[Any]) -> list[Any]:
    """Remove repeated items."""
    return list({json.dumps(item, sort_keys=True): item for item in some}.values())


def shallow(depth: int, change: OfValue) -> OfValue:
    """Change what lies this deep."""

    def deep(value: Any, level: int) -> Any:
        if level == depth and isinstance(value, (list, dict)):
            return change(value)
        if isinstance(value, list):
            return [deep(item, level + 1) for item in value]
        if isinstance(value, dict):
            return {name: deep(item, level + 1) for name, item in value.items()}
        return value

    return lambda value: deep(value, 0)


def of_calls(change: OfValue) -> list[Change]:
    """Change the arguments and answers of an agent's tool calls."""
    paths = ("functionCall.args", "functionResponse.response")
    return [one for path in paths for one in agents.runs(at(f"content.parts.*.{path}", change))]


def bodies(change: OfValue) -> Change:
    """Change the arguments of services."""
    return protocols.arguments(change, route=protocols.SERVICE)


# ---- names


def first_spelling() -> Callable[[str], str]:
    """Use the spelling of a name that came first, of those with one normal form."""
    names: dict[str, str] = {}
    return lambda name: names.setdefault(unicodedata.normalize("NFC", name), name)


def one_session() -> list[Change]:
    """Take session ids of one normal form for one."""
    first = first_spelling()
    return [
        agents.segment(5, first, f"* {agents.SESSION}*"),
        wire.requests(agents.RUNS, at("sessionId", first)),
    ]


# ---- witnesses


def payload(value: Any) -> Callable[[Platform], None]:
    """Send a payload with a value."""
    return lambda platform: witnesses.require_payload(platform, {"prompt": "", "value": value})


def fields(value: Any) -> Callable[[Platform], None]:
    """Send a value to a tool that returns it."""
    return lambda platform: witnesses.require_fields(platform, {"value": value})


def fields_of_a_runtime(value: Any) -> Callable[[Platform], None]:
    """Send a value to a tool of a runtime that returns it."""

    def witness(platform: Platform) -> None:
        with witnesses.hosted(platform, TOOLS) as runtime:
            witnesses.require_fields(runtime, {"value": value})

    return witness


def call(value: Any) -> Callable[[Platform], None]:
    """Let an agent call a tool with a value."""

    def witness(platform: Platform) -> None:
        session, args = witnesses.session_of(platform), {"value": value}
        events = witnesses.run(platform, session, "call", args=args, response=args, reply="done")
        calls = [it["args"] for event in events for it in event.function_calls]
        answers = [it["response"] for event in events for it in event.function_responses]
        require([[args], [args]], [calls, answers])

    return witness


def body(value: Any) -> Callable[[Platform], None]:
    """Send a body to the backend of a service."""

    def witness(platform: Platform) -> None:
        sent = witnesses.sent_by(platform, "addThing", body={"value": value})
        require({"value": value}, sent["body"])

    return witness


def query(tags: list[str]) -> Callable[[Platform], None]:
    """Send a list in the query of a request to the backend of a service."""

    def witness(platform: Platform) -> None:
        sent = witnesses.sent_by(platform, "findThings", word="a", tags=tags)
        require(tags, sent["query"]["tags"])

    return witness


def nested(depth: int) -> Any:
    """Return lists and objects, one inside the other."""
    value: Any = "deep"
    for number in range(depth):
        value = [value] if number % 2 else {"inner": value}
    return value


def sessions_of_two_forms(platform: Platform) -> None:
    """Create two sessions whose ids differ in their normal form."""
    user, ids = witnesses.new_id(), ["caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\u0301"]
    for id_ in ids:
        witnesses.said(platform, witnesses.named(platform, user, id_), f"to {id_}")
    listed = platform.agents.list(witnesses.AGENT, user_id=user)
    require(sorted(ids), sorted(session.id for session in listed))


def users_of_two_forms(platform: Platform) -> None:
    """Create sessions of two users whose ids differ in their normal form."""
    suffix = witnesses.new_id()
    for name in ("caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\u0301"):
        session = witnesses.session_of(platform, name + suffix)
        listed = platform.agents.list(witnesses.AGENT, user_id=name + suffix)
        require([session.id], [session.id for session in listed])


MANY = {f"key {number:03}": number for number in range(150)}
TABLE: dict[str, dict[str, Any]] = {
    "INV-01": {
        "read_true_in_a_list_as_1": Witnessed(
            application.payload(in_lists(true_as_1)), payload([True, False])
        ),
        "read_1_0_as_1": Witnessed(application.payload(leaves(whole)), payload(1.0)),
        "lose_the_sign_of_zero": Witnessed(
            application.payload(leaves(unsigned_zero)), payload(-0.0)
        ),
        "read_null_in_nested_lists_as_empty": Witnessed(
            application.payload(in_lists(null_as_empty, 4)), payload([[[[None]]]])
        ),
        "cut_lists_at_100": Witnessed(
            application.payload(short_lists(100)), payload([*range(150)])
        ),
        "lose_fields_after_the_100th": Witnessed(
            application.payload(few_fields(100)), payload(MANY)
        ),
        "write_what_lies_20_levels_deep_as_text": Witnessed(
            application.payload(shallow(20, json.dumps)), payload(nested(30))
        ),
        "remove_repeated_items": Witnessed(
            application.payload(of_containers(unique)), payload(["a", "b", "a"])
        ),
    },
    "HST-05": {
        "write_whole_floats_as_integers": Witnessed(
            wire.called_with("tools/call", leaves(whole), "POST /runtimes/{name}/*"),
            fields_of_a_runtime(2.0),
        )
    },
    "API-03": {
        "take_ids_of_one_normal_form_for_one": Witnessed(one_session(), sessions_of_two_forms)
    },
    "API-11": {
        "lose_the_sign_of_zero": Witnessed(of_calls(leaves(unsigned_zero)), call(-0.0)),
        "write_integers_in_a_list_as_floats": Witnessed(of_calls(in_lists(as_float)), call([1, 2])),
        "write_numbers_in_nested_lists_as_texts": Witnessed(
            of_calls(in_lists(as_text, 2)), call([[1, 2.5]])
        ),
        "cut_lists_at_32": Witnessed(of_calls(short_lists(32)), call(numbered(40))),
        "lose_what_lies_ten_levels_deep": Witnessed(
            of_calls(shallow(10, lambda _: None)), call(nested(15))
        ),
    },
    "API-18": {
        "take_users_of_one_normal_form_for_one": Witnessed(
            agents.users(first_spelling()), users_of_two_forms
        )
    },
    "MCP-03": {
        "read_empty_texts_in_a_list_as_null": Witnessed(
            protocols.arguments(at("fields", in_lists(empty_as_null)), route="POST /mcp"),
            fields(["", "a"]),
        ),
        "cut_lists_at_50": Witnessed(
            protocols.arguments(short_lists(50), route="POST /mcp"), fields(numbered(60))
        ),
    },
    "MCP-05": {
        "write_1_0_as_1": Witnessed(protocols.structured(leaves(whole)), fields(1.0)),
        "write_true_in_nested_lists_as_1": Witnessed(
            protocols.structured(in_lists(true_as_1, 2)), fields([[True]])
        ),
        "lose_fields_after_the_50th": Witnessed(protocols.structured(few_fields(50)), fields(MANY)),
        "write_what_lies_ten_levels_deep_as_text": Witnessed(
            protocols.structured(shallow(10, json.dumps)), fields(nested(15))
        ),
        "remove_repeated_items": Witnessed(
            protocols.structured(of_containers(unique)), fields([1, 2, 1])
        ),
    },
    "SVC-02": {
        "send_numbers_in_a_list_as_texts": Witnessed(
            bodies(at("body", in_lists(as_text, 2))), body([[1, 2.5]])
        ),
        "send_32_items_of_a_list": Witnessed(
            bodies(at("body", short_lists(32))), body(numbered(40))
        ),
        "send_repeated_items_once": Witnessed(bodies(at("tags", unique)), query(["a", "b", "a"])),
        "send_ten_items_of_a_list_in_a_query": Witnessed(
            bodies(at("tags", short_lists(10))), query(numbered(12))
        ),
        "lose_the_sign_of_zero": Witnessed(bodies(leaves(unsigned_zero)), body(-0.0)),
    },
}
