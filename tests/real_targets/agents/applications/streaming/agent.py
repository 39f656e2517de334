"""A BaseAgent that sends increments when asked to stream."""

from google.adk.agents import BaseAgent
from google.adk.events import Event
from scripted import content


class Streaming(BaseAgent):
    async def _run_async_impl(self, context):
        def said(text, **more):
            return Event(
                author=self.name, invocation_id=context.invocation_id, content=content(text), **more
            )

        if context.run_config.streaming_mode.value == "sse":
            for word in ("one ", "two ", "thrée"):
                yield said(word, partial=True)
        yield said("one two thrée", turn_complete=True)


root_agent = Streaming(name="streaming")
