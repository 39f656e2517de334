"""An agent that can take the conversation back to an earlier turn."""

from google.adk.agents import BaseAgent
from google.adk.events import Event, EventActions
from scripted import content


class Rewinding(BaseAgent):
    async def _run_async_impl(self, context):
        events = context.session.events
        if context.user_content.parts[0].text == "rewind":
            before = EventActions(rewind_before_invocation_id=events[0].invocation_id)
            yield Event(author="user", invocation_id=context.invocation_id, actions=before)
            return
        yield Event(
            author=self.name,
            invocation_id=context.invocation_id,
            content=content(f"{len(events)} events"),
        )


root_agent = Rewinding(name="rewinds")
