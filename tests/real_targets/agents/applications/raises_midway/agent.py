"""A BaseAgent that raises after an event."""

from google.adk.agents import BaseAgent
from google.adk.events import Event
from scripted import content


class Midway(BaseAgent):
    async def _run_async_impl(self, context):
        yield Event(author=self.name, invocation_id=context.invocation_id, content=content("begun"))
        raise RuntimeError("mid-way")


root_agent = Midway(name="midway")
