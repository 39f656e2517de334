"""Agents of real frameworks, as programs for environments of their own.

Each is run with the number of conversations and "whole" or "stream", and prints the events of every
conversation as JSON, without ids and times. Its tool runs code by the double's ``/invoke``.
"""

from __future__ import annotations

from dataclasses import dataclass

_COMMON = '''
import asyncio, json, os, sys, urllib.request

TIMES, STREAM = int(sys.argv[1]), sys.argv[2] == "stream"
PROMPT = "What is 6 * 7?"

def run_code(code: str, language: str) -> str:
    """Run code in the sandbox.

    Args:
        code: the source
        language: python3
    """
    request = urllib.request.Request(
        os.environ["DOUBLE"] + "/invoke",
        json.dumps({"do": "run_code", "prompt": code}).encode(),
        {"user_id": "ann", "session_id": "s1", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        result = json.loads(json.load(answer))
    return "".join(output["text"] for output in result["data"]["outputs"])

async def repeat(converse):
    print(json.dumps([await converse() for _ in range(TIMES)]))
'''
_ADK = """
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.genai import types

MODE = RunConfig(streaming_mode=StreamingMode.SSE if STREAM else StreamingMode.NONE)

def parts_of(event):
    for part in event.content.parts if event.content else ():
        call, response = part.function_call, part.function_response
        yield [part.text, call and [call.name, call.args], response and response.response]

async def events_of(runner):
    session = await runner.session_service.create_session(app_name="app", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text=PROMPT)])
    stream = runner.run_async(
        user_id="ann", session_id=session.id, new_message=message, run_config=MODE
    )
    return [[e.author, e.partial, e.error_message, *parts_of(e)] async for e in stream]
"""
_LLM_AGENT = """
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner

agent = LlmAgent(name="a", model="gemini-2.5-flash", instruction="Run code.", tools=[run_code])
asyncio.run(repeat(lambda: events_of(InMemoryRunner(agent, app_name="app"))))
"""
_VEADK = """
from google.adk.runners import InMemoryRunner
from veadk import Agent

agent = Agent(name="a", instruction="Run code.", tools=[run_code])
asyncio.run(repeat(lambda: events_of(InMemoryRunner(agent, app_name="app"))))
"""
_OPENAI = """
from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

set_tracing_disabled(True)
set_default_openai_api(API)
agent = Agent(name="a", instructions="Run code.", model="gpt-4o", tools=[function_tool(run_code)])

async def converse():
    if not STREAM:
        result = await Runner.run(agent, PROMPT)
        return [[item.type, str(getattr(item, "output", ""))] for item in result.new_items] + [
            result.final_output
        ]
    result, events = Runner.run_streamed(agent, PROMPT), []
    async for event in result.stream_events():
        data = getattr(event, "data", None)
        events.append([event.type, getattr(data, "type", ""), str(getattr(data, "delta", ""))])
    return [*events, result.final_output]

asyncio.run(repeat(converse))
"""
_LANGCHAIN = """
from langchain.agents import create_agent

agent = create_agent(MODEL, tools=[run_code], system_prompt="Run code.")
asked = {"messages": [("user", PROMPT)]}

def told(message):
    calls = [[call["name"], call["args"]] for call in getattr(message, "tool_calls", ())]
    return [message.type, message.content, calls]

async def converse():
    if not STREAM:
        return [told(message) for message in (await agent.ainvoke(asked))["messages"]]
    return [told(m) async for m, _ in agent.astream(asked, stream_mode="messages")]

asyncio.run(repeat(converse))
"""


@dataclass(frozen=True)
class ModelAgent:
    """An agent: the variable that names a Python with its packages, what installs them, its code."""

    name: str
    variable: str
    install: str
    program: str
    form: str

    @property
    def source(self) -> str:
        """The whole program."""
        return _COMMON + self.program


_OPENAI_PYTHON = ("DOUBLECHECK_OPENAI_AGENTS_PYTHON", "openai-agents")
_LANGCHAIN_PYTHON = (
    "DOUBLECHECK_LANGCHAIN_PYTHON",
    "langchain langchain-openai langchain-google-genai",
)
AGENTS = (
    ModelAgent(
        *("google-adk", "DOUBLECHECK_ADK_PYTHON", "google-adk"),
        *(_ADK + _LLM_AGENT, "generateContent"),
    ),
    ModelAgent(
        *("veadk", "DOUBLECHECK_VEADK_PYTHON", "veadk-python"),
        *(_ADK + _VEADK, "chat completions"),
    ),
    ModelAgent("openai-agents", *_OPENAI_PYTHON, f'API = "responses"\n{_OPENAI}', form="responses"),
    ModelAgent(
        *("openai-agents-chat", *_OPENAI_PYTHON),
        *(f'API = "chat_completions"\n{_OPENAI}', "chat completions"),
    ),
    ModelAgent(
        *("langchain-openai", *_LANGCHAIN_PYTHON),
        *(f'MODEL = "openai:gpt-4o"\n{_LANGCHAIN}', "chat completions"),
    ),
    ModelAgent(
        *("langchain-google-genai", *_LANGCHAIN_PYTHON),
        *(f'MODEL = "google_genai:gemini-2.5-flash"\n{_LANGCHAIN}', "generateContent"),
    ),
)
