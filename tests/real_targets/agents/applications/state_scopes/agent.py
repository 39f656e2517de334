"""State of the session, the user, the application and of one turn."""

from google.adk.agents import LlmAgent
from scripted import model


def before(callback_context):
    for scope in ("", "user:", "app:", "temp:"):
        key = f"{scope}count"
        callback_context.state[key] = callback_context.state.get(key, 0) + 1


root_agent = LlmAgent(
    name="scopes",
    model=model(lambda request: request.config.system_instruction),
    instruction="{count} {user:count} {app:count} {temp:count} {given?}",
    before_agent_callback=before,
)
