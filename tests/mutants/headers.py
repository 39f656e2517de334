"""Mutants that lose or change headers, or bodies whose length no header tells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from doublecheck.client._sync.platform import Platform
from doublecheck.wire import api_server
from tests.mutants import Witnessed, agents, application, protocols, wire, witnesses
from tests.mutants.application import custom
from tests.mutants.changes import cut
from tests.mutants.wire import Change, Request
from tests.mutants.witnesses import require

# ---- changes


def first_headers(count: int, route: str = application.INVOKE) -> Change:
    """Pass only this many custom headers."""

    def change(request: Request) -> None:
        names = [
            name
            for name in request.headers
            if name not in {*application.USUAL, *application.OF_HTTP}
        ]
        for name in names[count:]:
            del request.headers[name]

    return wire.requested(route, change)


def values(change: Callable[[str], str]) -> Change:
    """Change the values of custom headers."""
    return custom(lambda _, value: change(value))


def spaces(text: str) -> str:
    """Collapse spaces."""
    return re.sub(" +", " ", text)


def unique(text: str) -> str:
    """Remove repeated names from a list."""
    return ", ".join(dict.fromkeys(re.split(", *", text)))


def spaced(text: str) -> str:
    """Write a list with a space after each comma."""
    return re.sub(", *", ", ", text)


def is_chunked(request: Request) -> bool:
    """Return whether no header tells the length of the body."""
    return "chunked" in request.header("transfer-encoding")


def empty_if_chunked(route: str) -> Change:
    """Read a chunked body as an empty object."""

    def change(request: Request) -> None:
        if is_chunked(request):
            request.body = b"{}"

    return wire.requested(route, change)


def cut_if_chunked(route: str) -> Change:
    """Read only the first chunk of a body, as the witnesses send it."""

    def change(request: Request) -> None:
        if is_chunked(request):
            request.body = request.body[:5]

    return wire.requested(route, change)


def traces(change: Callable[[str], str]) -> Change:
    """Change the arguments of services that are headers."""

    def arguments(some: dict[str, Any]) -> dict[str, Any]:
        return {
            name: change(value) if "trace" in name.lower() else value
            for name, value in some.items()
        }

    return protocols.arguments(arguments, route=protocols.SERVICE)


# ---- witnesses


def sending(**named: str) -> Callable[[Platform], None]:
    """Send headers, whose names have hyphens for underscores."""
    headers = {name.replace("_", "-"): value for name, value in named.items()}
    return lambda platform: witnesses.require_headers(platform, headers)


def identified(**ids: str) -> Callable[[Platform], None]:
    """Send ids."""
    return lambda platform: witnesses.require_headers(platform, ids)


def many(count: int) -> Mapping[str, str]:
    """Return many headers."""
    return {f"x-number-{number}": f"value {number}" for number in range(count)}


def many_headers(platform: Platform) -> None:
    """Send many headers."""
    witnesses.require_headers(platform, many(40))


def many_headers_to_a_runtime(platform: Platform) -> None:
    """Send many headers to a runtime."""
    with witnesses.hosted(platform) as runtime:
        witnesses.require_headers(runtime, many(40))


def header_of_a_runtime(platform: Platform) -> None:
    """Send a header to a runtime."""
    with witnesses.hosted(platform) as runtime:
        witnesses.require_headers(runtime, {"x-custom": "a,b;  c"})


def chunked(platform: Platform) -> None:
    """Send a payload in chunks."""
    payload = {"prompt": "in chunks"}
    answer = witnesses.post(platform, "/invoke", payload)
    require(200, answer.status_code)
    require(payload, json.loads(answer.json())["payload"])


def chunked_to_a_runtime(platform: Platform) -> None:
    """Send a payload to a runtime in chunks."""
    with witnesses.hosted(platform) as runtime:
        chunked(runtime)


def chunked_run(platform: Platform) -> None:
    """Send a turn in chunks."""
    session = witnesses.session_of(platform)
    answer = witnesses.post(platform, "/run", api_server.body(session, "in chunks", {}))
    require(200, answer.status_code)
    require(["in chunks", "in chunks"], witnesses.history(platform, session))


def trace(value: str) -> Callable[[Platform], None]:
    """Send a header to the backend of a service."""

    def witness(platform: Platform) -> None:
        arguments = {"word": "a", "X-Trace": value}
        require(value, witnesses.sent_by(platform, "findThings", **arguments)["trace"])

    return witness


TABLE: dict[str, dict[str, Any]] = {
    "INV-01": {
        "read_a_chunked_body_as_empty": Witnessed(empty_if_chunked(application.INVOKE), chunked),
        "refuse_a_chunked_body": Witnessed(wire.refused(application.INVOKE, is_chunked), chunked),
    },
    "INV-02": {
        "pass_16_custom_headers": Witnessed(first_headers(16), many_headers),
        "pass_32_custom_headers": Witnessed(first_headers(32), many_headers),
        "cut_custom_headers_at_1_kib": Witnessed(values(cut(1024)), sending(x_long="ab" * 800)),
        "cut_custom_headers_at_4_kib": Witnessed(values(cut(4096)), sending(x_long="ab" * 3000)),
        "collapse_spaces": Witnessed(values(spaces), sending(x_custom="two  spaces")),
        "remove_quotation_marks_at_the_ends": Witnessed(
            values(lambda text: text.strip('"')), sending(x_custom='"quoted"')
        ),
        "remove_repeated_names_of_a_list": Witnessed(values(unique), sending(x_list="a, b, a")),
        "write_a_space_after_each_comma": Witnessed(values(spaced), sending(x_list="a,b,c")),
        "lose_empty_items_of_a_list": Witnessed(
            values(lambda text: re.sub("(; *)+", "; ", text)), sending(x_list="a; ; b")
        ),
        "cut_users_at_128": Witnessed(
            application.header("user_id", cut(128)), identified(user_id="ab" * 100)
        ),
    },
    "HST-05": {
        "pass_16_custom_headers": Witnessed(
            first_headers(16, application.HOSTED), many_headers_to_a_runtime
        ),
        "cut_custom_headers_at_a_semicolon": Witnessed(
            Change(
                wire.routed(application.HOSTED),
                request=values(lambda text: text.partition(";")[0]).request,
            ),
            header_of_a_runtime,
        ),
        "read_a_chunked_body_as_empty": Witnessed(
            empty_if_chunked(application.HOSTED), chunked_to_a_runtime
        ),
    },
    "API-07": {
        "read_the_first_chunk_of_a_body": Witnessed(cut_if_chunked(agents.RUN), chunked_run),
    },
    "SVC-02": {
        "collapse_spaces_of_headers": Witnessed(traces(spaces), trace("two  spaces")),
        "cut_headers_at_256": Witnessed(traces(cut(256)), trace("ab" * 200)),
        "cut_headers_at_a_comma": Witnessed(
            traces(lambda text: text.partition(",")[0]), trace("one,two")
        ),
    },
}
