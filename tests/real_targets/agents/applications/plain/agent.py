"""A BaseAgent: several events, state, the history."""

from google.adk.agents import BaseAgent
from google.adk.events import Event, EventActions
from scripted import content


class Plain(BaseAgent):
    async def _run_async_impl(self, context):
        turns = context.session.state.get("turns", 0)
        text = f"turn {turns}, {len(context.session.events)} events"
        yield self._event(context, text, state_delta={"turns": turns + 1})
        yield self._event(context, f"now {context.session.state['turns']}")

    def _event(self, context, text, **actions):
        return Event(
            author=self.name,
            invocation_id=context.invocation_id,
            content=content(text),
            actions=EventActions(**actions),
        )


root_agent = Plain(name="plain", description="A plain agent")
