"""An ADK App: its model calls the tools that the user's message names; a plugin watches."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext, load_memory
from google.genai import types

started: defaultdict[str, threading.Event] = defaultdict(threading.Event)
closed = threading.Event()


class Model(BaseLlm):  # type: ignore[misc,unused-ignore]
    """Calls each tool of a message ``[[name, arguments], ...]``, and then says "done"."""

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        requested, answers = [], 0
        for part in (part for content in llm_request.contents for part in content.parts):
            if part.text and part.text.startswith("[["):
                requested, answers = json.loads(part.text), 0
            answers += part.function_response is not None
        if answers < len(requested):
            name, arguments = requested[answers]
            yield _response(types.Part(function_call=types.FunctionCall(name=name, args=arguments)))
            return
        texts = [part.text for item in llm_request.contents for part in item.parts if part.text]
        yield _response(types.Part(text=f"done, of {len(texts)} texts"))


def _response(part: types.Part) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[part]))


class Watcher(BasePlugin):  # type: ignore[misc,unused-ignore]
    """Mark events, refuse a message, and record its runner's end."""

    async def before_run_callback(self, *, invocation_context: Any) -> types.Content | None:
        text = invocation_context.user_content.parts[0].text
        if text == "raise":
            raise ValueError("the plugin refuses")
        if text == "halt":
            return types.Content(role="model", parts=[types.Part(text="halted")])
        return None

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> Event:
        event.custom_metadata = {**(event.custom_metadata or {}), "watched": True}
        return event

    async def close(self) -> None:
        closed.set()


AUTH = AuthConfig(
    auth_scheme={
        "type": "oauth2",
        "flows": {
            "authorizationCode": {
                "authorizationUrl": "https://auth.example/authorize",
                "tokenUrl": "https://auth.example/token",
                "scopes": {"read": "to read"},
            }
        },
    },
    raw_auth_credential=AuthCredential(
        auth_type=AuthCredentialTypes.OAUTH2,
        oauth2=OAuth2Auth(client_id="id", client_secret="hidden", redirect_uri="https://b.example"),
    ),
)


def connect(tool_context: ToolContext) -> dict[str, Any]:
    """Use a credential of the user."""
    got = tool_context.get_auth_response(AUTH)
    if got is None:
        tool_context.request_credential(AUTH)
        return {"pending": True}
    return {"token": got.oauth2.access_token, "known": got.oauth2.client_secret is not None}


async def remember(tool_context: ToolContext) -> dict[str, Any]:
    """Add the session to the memory."""
    await tool_context.add_session_to_memory()
    return {"added": True}


async def credentials(tool_context: ToolContext) -> dict[str, Any]:
    """Save a credential and load it."""
    service = tool_context._invocation_context.credential_service
    before = await service.load_credential(AUTH, tool_context)
    config = AUTH.model_copy(update={"exchanged_auth_credential": AUTH.raw_auth_credential})
    await service.save_credential(config, tool_context)
    return {"known": before is not None}


def job() -> dict[str, Any]:
    """Begin what takes long."""
    return {"status": "pending"}


def delete(name: str) -> dict[str, Any]:
    """Do what is dangerous."""
    return {"deleted": name}


async def wait(name: str) -> dict[str, Any]:
    """Wait for long."""
    started[name].set()
    await asyncio.sleep(300)
    return {}


root_agent = LlmAgent(
    name="inner",
    model=Model(model="none"),
    tools=[
        connect,
        remember,
        credentials,
        wait,
        load_memory,
        LongRunningFunctionTool(job),
        FunctionTool(delete, require_confirmation=True),
    ],
)
app = App(
    name="scripted_app",
    root_agent=root_agent,
    plugins=[Watcher(name="watcher")],
    resumability_config=ResumabilityConfig(is_resumable=True),
)
