"""Mutants of access to API-server mode, locally and as a runtime behind the gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import unquote
from weakref import WeakSet

import pytest
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope

from agentdouble.errors import AccessError
from agentdouble.runtimes.authentication import keys
from agentdouble.runtimes.authentication.authorizers import ApiKey, KeyAuth
from agentdouble.runtimes.authentication.identity import Identity, Ownership, Thing
from agentdouble.runtimes.authentication.isolation import Isolation
from tests.mutants import Mutant, wire
from tests.mutants.api_changes import (
    ARTIFACTS,
    CREATE,
    DELETE,
    LIST,
    READ,
    RUN,
    RUN_SSE,
    Patching,
    by_turn,
    held_back,
    refused,
)
from tests.mutants.wire import Change, Request

NO_KEY = "API-server mode (local): no authentication by default (5)"
UNIFORM = "API-server mode (deployed): the API gateway authenticates uniformly (5)"
SAME = "API-server mode (deployed): the endpoints are the same (5)"
ISOLATED = "gateway authentication, isolating session context and permissions (5)"

HOSTED = "/runtimes/{name}"
Endpoint = Callable[[str, str], bool]  # whether a method and a path are of it


def _hosted(route: str) -> str:
    """Return a route of API-server mode at the address of a runtime."""
    method, path = route.split()
    return f"{method} {HOSTED}{path}"


# ---- a local API server that asks who calls


def _asks_for_a_key(route: str) -> Change:
    return refused(route, lambda request: "authorization" not in request.headers, 401)


def _streams_only_with_a_key(request: Request) -> None:
    if "authorization" not in request.headers:
        request.path = "/login"


def _knows_no_key(patch: pytest.MonkeyPatch) -> None:
    """Ask for a key from the second request of a caller on."""
    seen: set[str] = set()

    def again(request: Request) -> bool:
        if request.path in seen:
            return "authorization" not in request.headers
        seen.add(request.path)
        return False

    refused("GET /apps/*", again, 401)(patch)


# ---- endpoints, by method and path


def _everything(_method: str, _path: str) -> bool:
    return True


def _reads(method: str, path: str) -> bool:
    return method == "GET" and path.startswith("/apps/") and path.count("/") == 6


def _lists(method: str, path: str) -> bool:
    return method == "GET" and _is_list(path)


def _creates(method: str, path: str) -> bool:
    return method == "POST" and _is_list(path)


def _is_list(path: str) -> bool:
    return path.startswith("/apps/") and path.endswith("/sessions")


def _deletes(method: str, _path: str) -> bool:
    return method == "DELETE"


def _sees_artifacts(_method: str, path: str) -> bool:
    return path.endswith("/artifacts")


def _at(address: str) -> Endpoint:
    return lambda _method, path: path == address


# ---- a gateway


def _admitted(when: Endpoint) -> Patching:
    """Admit requests to some endpoints, by method and path, without a key or with a wrong one."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        identify = keys.identify

        def admit(runtime: str, authorizer: KeyAuth, connection: HTTPConnection) -> Identity:
            try:
                return identify(runtime, authorizer, connection)
            except AccessError:
                path = connection.scope["path"].removeprefix(f"/runtimes/{runtime}")
                if when(connection.scope["method"], path):
                    return Identity("key", authorizer.keys[0].name)
                raise

        patch.setattr(keys, "identify", admit)

    return patching


def _taken(meant: Callable[[str, str], bool]) -> Patching:
    """Take a key for one of the runtime's by a comparison: what was presented, the secret."""

    def find(presented: str, known: Iterable[ApiKey]) -> ApiKey | None:
        return next((key for key in known if meant(presented, key.secret)), None)

    return lambda patch: patch.setattr(keys, "_find", find)


def _kept_from_the_other(patch: pytest.MonkeyPatch) -> None:
    """Know the first key of a runtime alone."""
    find = keys._find
    patch.setattr(keys, "_find", lambda presented, known: find(presented, known[:1]))


def _unpunctual(patch: pytest.MonkeyPatch) -> None:
    """Authenticate a caller once, and admit everybody to that runtime from then on."""
    known: dict[str, Identity] = {}
    identify = keys.identify

    def remembered(runtime: str, authorizer: KeyAuth, connection: HTTPConnection) -> Identity:
        try:
            known[runtime] = identify(runtime, authorizer, connection)
        except AccessError:
            if runtime not in known:
                raise
        return known[runtime]

    patch.setattr(keys, "identify", remembered)


def _gone(route: str, status: int = 404) -> Change:
    return wire.statuses(_hosted(route), status, {"detail": "Not Found"})


# ---- isolation


def _open_to_others(when: Endpoint) -> Patching:
    """Let every identity in at some endpoints, by method and path."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        guarded, require = Isolation.check, Isolation._require
        opened: WeakSet[Isolation] = WeakSet()

        async def check(self: Isolation, path: str, scope: Scope, receive: Receive) -> Receive:
            if when(scope.get("method", ""), unquote(path)):
                opened.add(self)
            return await guarded(self, path, scope, receive)

        def required(self: Isolation, own: bool) -> None:
            require(self, own or self in opened)

        patch.setattr(Isolation, "check", check)
        patch.setattr(Isolation, "_require", required)

    return patching


def _believed(patch: pytest.MonkeyPatch) -> None:
    """Believe a caller who says in the header user_id whose the session is."""
    guarded = Isolation.check

    async def check(self: Isolation, path: str, scope: Scope, receive: Receive) -> Receive:
        said = [value.decode("latin-1") for name, value in scope["headers"] if name == b"user_id"]
        if said and f"/users/{said[0]}/" in unquote(path):
            return receive
        return await guarded(self, path, scope, receive)

    patch.setattr(Isolation, "check", check)


def _owns_only_the_latest(patch: pytest.MonkeyPatch) -> None:
    """Remember of an identity only the user it named last."""
    take = Ownership._take

    def latest(self: Ownership, identity: Identity, thing: Thing) -> None:
        for other in [one for one, owner in self._owners.items() if owner == identity]:
            if other.kind == thing.kind and other != thing:
                del self._owners[other]
        take(self, identity, thing)

    patch.setattr(Ownership, "_take", latest)


def _taken_over(patch: pytest.MonkeyPatch) -> None:
    """Give a user to the identity that named it last, even if that was refused."""
    foreign = Ownership.is_anothers

    def is_anothers(self: Ownership, thing: Thing, identity: Identity) -> bool:
        refused = foreign(self, thing, identity)
        if refused:
            self._owners[thing] = identity
        return refused

    patch.setattr(Ownership, "is_anothers", is_anothers)


def _all_the_same(patch: pytest.MonkeyPatch) -> None:
    """Take all callers of a runtime for one."""
    patch.setattr(Ownership, "is_anothers", lambda _self, _thing, _identity: False)


MUTANTS: tuple[Mutant, ...] = (
    # ---- AUT-01
    Mutant("ask_for_a_key_everywhere", "AUT-01", NO_KEY, _asks_for_a_key("* /*")),
    Mutant("ask_for_a_key_to_create", "AUT-01", NO_KEY, _asks_for_a_key(CREATE)),
    Mutant("ask_for_a_key_to_list_sessions", "AUT-01", NO_KEY, _asks_for_a_key(LIST)),
    Mutant("ask_for_a_key_to_read", "AUT-01", NO_KEY, _asks_for_a_key(READ)),
    Mutant("ask_for_a_key_to_run", "AUT-01", NO_KEY, _asks_for_a_key(RUN)),
    Mutant(
        "ask_for_a_key_to_stream",
        "AUT-01",
        NO_KEY,
        wire.requested(RUN_SSE, _streams_only_with_a_key),
    ),
    Mutant("ask_for_a_key_to_delete", "AUT-01", NO_KEY, _asks_for_a_key(DELETE)),
    Mutant("ask_for_a_key_to_list_artifacts", "AUT-01", NO_KEY, _asks_for_a_key(ARTIFACTS)),
    Mutant("ask_for_a_key_for_the_version", "AUT-01", NO_KEY, _asks_for_a_key("GET /version")),
    Mutant("ask_for_a_key_the_second_time", "AUT-01", NO_KEY, _knows_no_key),
    # ---- AUT-02
    Mutant("admit_everybody", "AUT-02", UNIFORM, _admitted(_everything)),
    Mutant(
        "admit_everybody_to_the_list_of_applications",
        "AUT-02",
        UNIFORM,
        _admitted(_at("/list-apps")),
    ),
    Mutant("admit_everybody_to_the_version", "AUT-02", UNIFORM, _admitted(_at("/version"))),
    Mutant("admit_everybody_to_read", "AUT-02", UNIFORM, _admitted(_reads)),
    Mutant("admit_everybody_to_list_sessions", "AUT-02", UNIFORM, _admitted(_lists)),
    Mutant("admit_everybody_to_create", "AUT-02", UNIFORM, _admitted(_creates)),
    Mutant("admit_everybody_to_delete", "AUT-02", UNIFORM, _admitted(_deletes)),
    Mutant("admit_everybody_to_run", "AUT-02", UNIFORM, _admitted(_at("/run"))),
    Mutant("admit_everybody_to_stream", "AUT-02", UNIFORM, _admitted(_at("/run_sse"))),
    Mutant("admit_everybody_to_artifacts", "AUT-02", UNIFORM, _admitted(_sees_artifacts)),
    Mutant("admit_everybody_after_one", "AUT-02", UNIFORM, _unpunctual),
    Mutant("take_any_key", "AUT-02", UNIFORM, _taken(lambda _presented, _secret: True)),
    Mutant(
        "take_the_beginning_of_a_key",
        "AUT-02",
        UNIFORM,
        _taken(lambda presented, secret: secret.startswith(presented)),
    ),
    Mutant(
        "take_what_begins_with_a_key",
        "AUT-02",
        UNIFORM,
        _taken(lambda presented, secret: presented.startswith(secret)),
    ),
    Mutant(
        "take_a_key_in_capitals",
        "AUT-02",
        UNIFORM,
        _taken(lambda presented, secret: presented.lower() == secret.lower()),
    ),
    Mutant("know_the_first_key_alone", "AUT-02", UNIFORM, _kept_from_the_other),
    Mutant("have_no_deletion_when_deployed", "AUT-02", SAME, _gone(DELETE, 405)),
    Mutant("have_no_artifacts_when_deployed", "AUT-02", SAME, _gone(ARTIFACTS)),
    Mutant("have_no_version_when_deployed", "AUT-02", SAME, _gone("GET /version")),
    Mutant("have_no_list_when_deployed", "AUT-02", SAME, _gone(LIST)),
    Mutant("hold_streams_back_when_deployed", "AUT-02", SAME, by_turn(held_back, _hosted(RUN_SSE))),
    # ---- AUT-03
    Mutant("take_all_callers_for_one", "AUT-03", ISOLATED, _all_the_same),
    Mutant("let_others_read", "AUT-03", ISOLATED, _open_to_others(_reads)),
    Mutant("let_others_list", "AUT-03", ISOLATED, _open_to_others(_lists)),
    Mutant("let_others_delete", "AUT-03", ISOLATED, _open_to_others(_deletes)),
    Mutant("let_others_run", "AUT-03", ISOLATED, _open_to_others(_at("/run"))),
    Mutant("let_others_stream", "AUT-03", ISOLATED, _open_to_others(_at("/run_sse"))),
    Mutant("let_others_see_artifacts", "AUT-03", ISOLATED, _open_to_others(_sees_artifacts)),
    Mutant(
        "let_others_create_for_a_user",
        "AUT-03",
        ISOLATED,
        _open_to_others(lambda method, path: method == "POST" and path.startswith("/apps/")),
    ),
    Mutant("believe_the_header_user_id", "AUT-03", ISOLATED, _believed),
    Mutant("keep_only_the_latest_user_apart", "AUT-03", ISOLATED, _owns_only_the_latest),
    Mutant("give_a_user_to_who_asked_last", "AUT-03", ISOLATED, _taken_over),
)
