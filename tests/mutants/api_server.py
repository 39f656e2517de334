"""Mutants of API-server mode: applications, artifacts, /health and /version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agentdouble.agents.agent import Agent
from agentdouble.api_server.memory import MemoryArtifacts
from agentdouble.api_server.runs import Runs
from agentdouble.errors import ApiError
from tests.mutants import Mutant, wire
from tests.mutants.api_changes import (
    ARTIFACTS,
    RUN,
    RUN_SSE,
    Json,
    Patching,
    all_of,
    refuse,
    refused,
    segments,
)
from tests.mutants.wire import Answer, Request

LIST_APPS, HEALTH, VERSION = "GET /list-apps", "GET /health", "GET /version"
HTML = b"<!doctype html><title>Welcome</title><p>It works!"

LISTS_APPS = "GET /list-apps: list of available agent applications (4.2)"
LISTS_ARTIFACTS = "GET .../artifacts: list of artifacts (4.2)"
IS_HEALTH = "GET /health: health (4.2)"
IS_VERSION = "A /version endpoint exists in API-server mode; its body is version information (9)"
IS_NAME = "agent application name (a subdirectory name of the agents directory) (2.2)"


def _from_the_second_time(route: str, change: Callable[[Answer], None]) -> Patching:
    """Change all answers of a route but the first."""

    def changed(patch: pytest.MonkeyPatch) -> None:
        asked = 0

        def answer(answer: Answer) -> None:
            nonlocal asked
            asked += 1
            if asked > 1:
                change(answer)

        wire.answered(route, lambda one, _request: answer(one))(patch)

    return changed


def _empty(answer: Answer) -> None:
    answer.body = b"[]"


def _html(answer: Answer, _request: Request) -> None:
    answer.body, answer.headers["content-type"] = HTML, "text/html"


def _none_yet(patch: pytest.MonkeyPatch) -> None:
    """List the applications that have run, and no other."""
    ran: set[str] = set()

    def note(body: Json) -> Json:
        ran.add(str(body.get("appName")))
        return body

    wire.install(
        patch,
        wire.requests(RUN, note),
        wire.requests(RUN_SSE, note),
        wire.answers(LIST_APPS, lambda names: [name for name in names if name in ran]),
    )


def _names(change: Callable[[str], Any]) -> Patching:
    """Change each name in the list of applications."""
    return wire.answers(LIST_APPS, lambda names: [change(name) for name in names])


def _takes(meant: Callable[[str, str], bool]) -> Patching:
    """Run the application that a name is taken for, where there is none of that name."""

    def change(patch: pytest.MonkeyPatch) -> None:
        exact = Runs.agent

        async def agent(self: Runs, app: str) -> Agent:
            try:
                return await exact(self, app)
            except ApiError:
                for name in self.directory.names():
                    if meant(app, name):
                        return await exact(self, name)
                raise

        patch.setattr(Runs, "agent", agent)

    return change


def _hyphens_for_underscores(patch: pytest.MonkeyPatch) -> None:
    _takes(lambda app, name: app == name.replace("_", "-"))(patch)
    _names(lambda name: name.replace("_", "-"))(patch)


def _with_suffix(body: Json) -> Json:
    return {**body, "appName": f"{body['appName']}.agent"} if "appName" in body else body


def _artifacts(shown: Callable[[tuple[str, str, str], tuple[str, str, str]], bool]) -> Patching:
    """List the artifacts of all owners that are shown to an owner: app, user and session."""

    def change(patch: pytest.MonkeyPatch) -> None:
        async def names(self: MemoryArtifacts, app: str, user: str, session: str) -> Sequence[str]:
            asked = (app, user, session)
            return sorted({key.name for key in self._artifacts if shown(asked, key[:3])})

        patch.setattr(MemoryArtifacts, "names", names)

    return change


def _listed_artifacts(change: Callable[[list[Any]], Any]) -> Patching:
    return wire.answers(
        ARTIFACTS, lambda found: change(found) if isinstance(found, list) else found
    )


def _stale_artifacts(patch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    wire.answers(ARTIFACTS, lambda found, request: seen.setdefault(request.path, found))(patch)


def _busy(patch: pytest.MonkeyPatch) -> None:
    """Answer /health with 503 while a run streams."""
    streaming: set[int] = set()

    def begins(request: Request) -> None:
        if request.json and request.json.get("streaming"):
            streaming.add(id(request))

    def follow(event: Json, request: Request) -> Json:
        if not event.get("partial"):
            streaming.discard(id(request))
        return event

    wire.install(
        patch,
        wire.requested(RUN_SSE, begins),
        wire.events(RUN_SSE, follow),
        refused(HEALTH, lambda _request: bool(streaming), 503),
    )


def _artifacts_of_session(_found: Any, request: Request) -> Any:
    return [{"id": segments(request)[5], "events": []}]


MUTANTS: tuple[Mutant, ...] = (
    # ---- API-01
    Mutant("list_nothing", "API-01", LISTS_APPS, wire.answers(LIST_APPS, lambda _names: [])),
    Mutant(
        "list_a_folder_that_is_no_application",
        "API-01",
        LISTS_APPS,
        wire.answers(LIST_APPS, lambda names: [*names, "__pycache__"]),
    ),
    Mutant(
        "list_an_application_that_is_gone",
        "API-01",
        LISTS_APPS,
        wire.answers(LIST_APPS, lambda names: [*names, "retired_agent"]),
    ),
    Mutant("list_paths_for_names", "API-01", LISTS_APPS, _names(lambda name: f"agents/{name}")),
    Mutant("list_names_in_capitals", "API-01", LISTS_APPS, _names(str.upper)),
    Mutant("list_titles", "API-01", LISTS_APPS, _names(lambda name: name.replace("_", " "))),
    Mutant("list_names_of_16_characters", "API-01", LISTS_APPS, _names(lambda name: name[:16])),
    Mutant("list_only_applications_that_have_run", "API-01", LISTS_APPS, _none_yet),
    Mutant(
        "list_nothing_the_second_time",
        "API-01",
        LISTS_APPS,
        _from_the_second_time(LIST_APPS, _empty),
    ),
    Mutant(
        "answer_how_many_there_are",
        "API-01",
        LISTS_APPS,
        wire.answers(LIST_APPS, lambda names: {"count": len(names)}),
    ),
    Mutant("fail_with_the_list", "API-01", LISTS_APPS, wire.statuses(LIST_APPS, 500)),
    # ---- API-13
    Mutant(
        "have_no_artifacts_endpoint",
        "API-13",
        LISTS_ARTIFACTS,
        wire.statuses(ARTIFACTS, 404, {"detail": "Not Found"}),
    ),
    Mutant(
        "have_no_artifact_service",
        "API-13",
        LISTS_ARTIFACTS,
        wire.statuses(ARTIFACTS, 500, {"detail": "no artifact service"}),
    ),
    Mutant(
        "refuse_a_session_without_artifacts",
        "API-13",
        LISTS_ARTIFACTS,
        wire.answered(
            ARTIFACTS,
            lambda answer, _request: refuse(answer, 404) if answer.body == b"[]" else None,
        ),
    ),
    Mutant(
        "list_no_artifact_ever",
        "API-13",
        LISTS_ARTIFACTS,
        _listed_artifacts(lambda _found: []),
    ),
    Mutant(
        "list_only_the_first_artifact",
        "API-13",
        LISTS_ARTIFACTS,
        _listed_artifacts(lambda found: found[:1]),
    ),
    Mutant(
        "list_how_many_artifacts_there_are",
        "API-13",
        LISTS_ARTIFACTS,
        _listed_artifacts(len),
    ),
    Mutant("list_stale_artifacts", "API-13", LISTS_ARTIFACTS, _stale_artifacts),
    Mutant(
        "list_the_session_for_its_artifacts",
        "API-13",
        LISTS_ARTIFACTS,
        wire.answers(ARTIFACTS, _artifacts_of_session),
    ),
    Mutant(
        "list_the_artifacts_of_all_the_users_sessions",
        "API-13",
        "GET .../sessions/{session}/artifacts: list of artifacts (4.2)",
        _artifacts(lambda asked, owner: asked[:2] == owner[:2]),
    ),
    Mutant(
        "list_the_artifacts_of_other_users",
        "API-13",
        "/apps/{app}/users/{user}/sessions/{session}/artifacts: {user} the user id (4.2)",
        _artifacts(lambda asked, owner: asked[0] == owner[0] and asked[2] == owner[2]),
        also=("API-18",),
    ),
    # ---- API-14
    Mutant("have_no_health", "API-14", IS_HEALTH, wire.statuses(HEALTH, 404, {"detail": "?"})),
    Mutant("fail_at_health", "API-14", IS_HEALTH, wire.statuses(HEALTH, 500)),
    Mutant("ask_for_a_key_at_health", "API-14", IS_HEALTH, wire.statuses(HEALTH, 401)),
    Mutant(
        "be_healthy_only_once",
        "API-14",
        IS_HEALTH,
        _from_the_second_time(HEALTH, lambda answer: refuse(answer, 503)),
    ),
    Mutant("be_unhealthy_during_a_run", "API-14", IS_HEALTH, _busy),
    # ---- API-15
    Mutant("have_no_version", "API-15", IS_VERSION, wire.statuses(VERSION, 404, {"detail": "?"})),
    Mutant("fail_at_version", "API-15", IS_VERSION, wire.statuses(VERSION, 500)),
    Mutant(
        "answer_health_for_version",
        "API-15",
        IS_VERSION,
        wire.answers(VERSION, lambda _found: {"status": "ok"}),
    ),
    Mutant(
        "answer_an_empty_object_for_version",
        "API-15",
        IS_VERSION,
        wire.answers(VERSION, lambda _found: {}),
    ),
    Mutant(
        "leave_every_version_empty",
        "API-15",
        IS_VERSION,
        wire.answers(VERSION, lambda found: dict.fromkeys(found, "")),
    ),
    Mutant(
        "leave_every_version_null",
        "API-15",
        IS_VERSION,
        wire.answers(VERSION, lambda found: dict.fromkeys(found)),
    ),
    Mutant(
        "answer_a_web_page_for_version",
        "API-15",
        IS_VERSION,
        wire.answered(VERSION, _html),
    ),
    # ---- API-16
    Mutant("run_any_name", "API-16", IS_NAME, _takes(lambda _app, _name: True)),
    Mutant(
        "run_a_name_in_other_capitals",
        "API-16",
        IS_NAME,
        _takes(lambda app, name: app.casefold() == name.casefold()),
    ),
    Mutant(
        "run_the_beginning_of_a_name",
        "API-16",
        IS_NAME,
        _takes(lambda app, name: name.startswith(app)),
    ),
    Mutant(
        "run_what_begins_with_a_name",
        "API-16",
        IS_NAME,
        _takes(lambda app, name: app.startswith(name)),
    ),
    Mutant("name_applications_with_hyphens", "API-16", IS_NAME, _hyphens_for_underscores),
    Mutant(
        "refuse_the_listed_name",
        "API-16",
        IS_NAME,
        all_of(*(wire.requests(route, _with_suffix) for route in (RUN, RUN_SSE))),
    ),
)
