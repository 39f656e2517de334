"""An agent that yields nothing."""

from google.adk.agents import BaseAgent


class Silent(BaseAgent):
    async def _run_async_impl(self, context):
        return
        yield


root_agent = Silent(name="silent")
