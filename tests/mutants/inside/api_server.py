"""Mutations of the double under which the checks of api_server fail."""

from __future__ import annotations

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.agents.events import Event, Message, Part
from agentdouble.api_server import event_builder, session_service
from agentdouble.api_server import routes as api_routes
from agentdouble.api_server import views as api_views
from agentdouble.api_server.agent_run import SessionBackend
from agentdouble.api_server.artifact_service import ArtifactService
from agentdouble.api_server.event_builder import EventBuilder
from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.run import Run
from agentdouble.api_server.runs import Runs
from agentdouble.api_server.session_service import SessionService
from agentdouble.api_server.stores import SessionKey
from agentdouble.apps import simple_responses
from doublecheck.contracts import wire
from tests.mutants.inside import inside


def list_applications_twice(patch: pytest.MonkeyPatch) -> None:
    original = AgentsDirectory.names
    patch.setattr(AgentsDirectory, "names", lambda self: [*original(self), *original(self)])


def make_one_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(session_service, "uuid", SimpleNamespace(uuid4=lambda: "the same"))


def take_no_id_from_the_path(patch: pytest.MonkeyPatch) -> None:
    original = SessionService.create_with_id

    async def create(self: SessionService, key: SessionKey, state: Any) -> Any:
        return await original(self, key._replace(id="another"), state)

    patch.setattr(SessionService, "create_with_id", create)


def list_everybody_s_sessions(patch: pytest.MonkeyPatch) -> None:
    async def of_user(self: MemorySessions, app: str, _user: str) -> Any:
        owners = [(owner, ids) for owner, ids in self._sessions.items() if owner[0] == app]
        keys = [SessionKey(*owner, id_) for owner, ids in owners for id_ in ids]
        return [await self.head(key) for key in keys]

    patch.setattr(MemorySessions, "of_user", of_user)


def lose_what_users_said(patch: pytest.MonkeyPatch) -> None:
    _change_events(patch, b'"author":"user"', b'"text":"', b'"text":"?')


def _change_events(patch: pytest.MonkeyPatch, of: bytes, old: bytes, new: bytes) -> None:
    original = SessionService.read

    async def read(self: SessionService, key: SessionKey) -> Any:
        stored = await original(self, key)
        events = [one.replace(old, new) if of in one else one for one in stored.events]
        return dataclasses.replace(stored, events=tuple(events))

    patch.setattr(SessionService, "read", read)


def forget_the_past(patch: pytest.MonkeyPatch) -> None:
    async def history(_self: SessionBackend) -> tuple[Event, ...]:
        return ()

    patch.setattr(SessionBackend, "history", history)


def delete_nothing(patch: pytest.MonkeyPatch) -> None:
    async def delete(*_: Any) -> bool:
        return True

    patch.setattr(MemorySessions, "delete", delete)


def return_other_events_than_are_kept(patch: pytest.MonkeyPatch) -> None:
    _change_events(patch, b'"role":"model"', b'"text":"', b'"text":"?')


def send_bare_lines(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(api_views, "event", lambda json: b"event: " + json)
    patch.setattr(wire, "READ_WITHIN_S", 0.1)


def hold_increments_back(patch: pytest.MonkeyPatch) -> None:
    original = Run._publish

    async def publish(self: Run, ready: Any, show: Any) -> None:
        whole = [event for event in ready if not event.get("partial")]
        await original(self, whole, show)

    patch.setattr(Run, "_publish", publish)
    patch.setattr(wire, "READ_WITHIN_S", 0.1)


def say_it_as_the_user(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(event_builder, "Event", functools.partial(Event, role="user"))


def drop_tool_calls(patch: pytest.MonkeyPatch) -> None:
    original = EventBuilder.of_yielded

    def of_yielded(self: EventBuilder, yielded: Any) -> Any:
        return [] if isinstance(yielded.value, Part) else original(self, yielded)

    patch.setattr(EventBuilder, "of_yielded", of_yielded)


def run_without_a_message(patch: pytest.MonkeyPatch) -> None:
    original = Run._message

    def message(self: Run) -> Message:
        nothing = self._body.new_message is None
        return Message((Part.of_text("nothing"),)) if nothing else original(self)

    patch.setattr(Run, "_message", message)


def list_artifacts_as_an_object(patch: pytest.MonkeyPatch) -> None:
    async def names(*_: Any) -> Any:
        return {"names": []}

    patch.setattr(ArtifactService, "names", names)


def answer_health_with_an_error(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple_responses, "state", lambda *_: PlainTextResponse("ill", 503))


def say_no_version(patch: pytest.MonkeyPatch) -> None:
    async def show(_self: Any, _request: Any) -> Any:
        return api_routes.json(b"{}")

    patch.setattr(api_routes.Version, "show", show)


def run_any_application(patch: pytest.MonkeyPatch) -> None:
    original = Runs.agent

    async def agent(self: Runs, _app: str) -> Any:
        return await original(self, "doublecheck_reference")

    patch.setattr(Runs, "agent", agent)
    patch.setenv("AGENTDOUBLE_UNKNOWNS", '{"U-RUN-UNKNOWN-SESSION": "create"}')


def show_anybody_s_session(patch: pytest.MonkeyPatch) -> None:
    original = MemorySessions._find

    def find(self: MemorySessions, key: SessionKey) -> Any:
        found = original(self, key)
        others = [ids.get(key.id) for (app, _), ids in self._sessions.items() if app == key.app]
        return found or next(filter(None, others), None)

    patch.setattr(MemorySessions, "_find", find)


def ask_for_a_key(patch: pytest.MonkeyPatch) -> None:
    async def show(_self: Any, _request: Any) -> Any:
        return api_routes.refused(401, "Who are you?")

    patch.setattr(api_routes.Version, "show", show)


MUTANTS = (
    inside("API-01", list_applications_twice),
    inside("API-02", make_one_id),
    inside("API-03", take_no_id_from_the_path),
    inside("API-04", list_everybody_s_sessions),
    inside("API-05", lose_what_users_said),
    inside("API-06", delete_nothing),
    inside("API-07", return_other_events_than_are_kept),
    inside("API-08", send_bare_lines),
    inside("API-09", hold_increments_back),
    inside("API-10", say_it_as_the_user),
    inside("API-11", drop_tool_calls),
    inside("API-12", run_without_a_message),
    inside("API-13", list_artifacts_as_an_object),
    inside("API-14", answer_health_with_an_error),
    inside("API-15", say_no_version),
    inside("API-16", run_any_application),
    inside("API-17", forget_the_past),
    inside("API-18", show_anybody_s_session),
    inside("AUT-01", ask_for_a_key),
)
