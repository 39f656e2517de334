"""Mutants of the library's decorators, which accept agents and tools that are none."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agentdouble import A2AApp, MCPApp, SimpleApp
from doublecheck.client._sync.platform import Platform
from tests.mutants import Witnessed
from tests.mutants.library import accepting

# ---- what must be refused


def sync_agent(prompt: str) -> str:
    """Answer at once."""
    return prompt


async def agent_without_a_prompt() -> str:
    """Answer nobody."""
    return ""


async def agent_of_two(prompt: str, more: str) -> str:
    """Answer two."""
    return prompt + more


async def agent_of_numbers(prompt: int) -> str:
    """Answer a number."""
    return str(prompt)


async def agent_with_a_number(prompt: str) -> int:
    """Answer with a number."""
    return len(prompt)


async def keyword_alone(city: str, *, days) -> str:  # type: ignore[no-untyped-def]
    """Say nothing."""
    return city


class Executor:
    """An executor that derives from nothing."""

    async def execute(self, context: Any, event_queue: Any) -> None:
        """Do nothing."""

    async def cancel(self, context: Any, event_queue: Any) -> None:
        """Do nothing."""


# ---- witnesses


def refuses(decorate: Callable[[Any], Any], thing: Any) -> Callable[[Platform], None]:
    """Decorate what must be refused."""

    def witness(_platform: Platform) -> None:
        try:
            decorate(thing)
        except TypeError:
            return
        raise AssertionError(f"{thing} is accepted")

    return witness


def is_sync(thing: Any) -> bool:
    """Return whether something is a function that is not async."""
    return inspect.isfunction(thing) and not inspect.iscoroutinefunction(thing)


def parameters(thing: Any) -> Any:
    """Return the parameters of a function, or nothing."""
    return list(inspect.signature(thing).parameters.values()) if inspect.isfunction(thing) else []


def agents_if(select: Callable[[Any], Any], thing: Any) -> Witnessed:
    """Return a mutant that accepts selected agents, one of which is shown."""
    return Witnessed(
        accepting(MCPApp, "agent_as_a_tool", select),
        refuses(lambda it: MCPApp().agent_as_a_tool(it), thing),
    )


TABLE: dict[str, dict[str, Any]] = {
    "DEC-01": {
        "accept_a_class": Witnessed(
            accepting(SimpleApp, "entrypoint", inspect.isclass),
            refuses(lambda it: SimpleApp().entrypoint(it), Executor),
        )
    },
    "DEC-04": {
        "accept_a_sync_agent": agents_if(is_sync, sync_agent),
        "accept_an_agent_without_a_prompt": agents_if(
            lambda thing: inspect.isfunction(thing) and not parameters(thing),
            agent_without_a_prompt,
        ),
        "accept_an_agent_of_two_parameters": agents_if(
            lambda thing: len(parameters(thing)) == 2, agent_of_two
        ),
        "accept_an_agent_whose_prompt_is_no_text": agents_if(
            lambda thing: [it.annotation for it in parameters(thing)] in (["int"], [int]),
            agent_of_numbers,
        ),
        "accept_an_agent_that_returns_a_number": agents_if(
            lambda thing: (
                inspect.isfunction(thing)
                and inspect.signature(thing).return_annotation in ("int", int)
            ),
            agent_with_a_number,
        ),
        "accept_a_keyword_without_annotation": Witnessed(
            accepting(
                MCPApp,
                "tool",
                lambda thing: any(
                    it.kind is it.KEYWORD_ONLY and it.annotation is it.empty
                    for it in parameters(thing)
                ),
            ),
            refuses(lambda it: MCPApp().tool(it), keyword_alone),
        ),
        "accept_a_text": Witnessed(
            accepting(MCPApp, "tool", lambda thing: isinstance(thing, str)),
            refuses(lambda it: MCPApp().tool(it), "tool"),
        ),
    },
    "DEC-05": {
        "accept_a_text_as_an_executor": Witnessed(
            accepting(A2AApp, "agent_executor", lambda thing: isinstance(thing, str)),
            refuses(lambda it: A2AApp().agent_executor(runner="echo")(it), "executor"),
        )
    },
}
