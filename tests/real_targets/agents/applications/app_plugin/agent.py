"""An App with a plugin, which replaces a message and marks events."""

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins import BasePlugin
from google.genai import types
from scripted import echo, model


class Shouting(BasePlugin):
    async def on_user_message_callback(self, *, invocation_context, user_message):
        text = (user_message.parts[0].text or "").upper()
        return types.Content(role="user", parts=[types.Part(text=text)])

    async def on_event_callback(self, *, invocation_context, event):
        event.custom_metadata = {"plugin": self.name}
        return event

    async def before_run_callback(self, *, invocation_context):
        invocation_context.session.state["seen"] = True


app = App(
    name="app_plugin",
    root_agent=LlmAgent(name="plugged", model=model(echo), description="With a plugin"),
    plugins=[Shouting(name="shouting")],
)
root_agent = LlmAgent(name="not_this_one", model=model(echo))
