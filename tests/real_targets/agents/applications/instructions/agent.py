"""Instructions that functions make, of which one stays the same for the model's cache."""

from google.adk.agents import LlmAgent
from scripted import model


async def instruct(context):
    return f"{context.user_id} in {context.session.id}, mood {context.state.get('mood')}"


def script(request):
    return f"{request.config.system_instruction} | {len(request.contents)}"


root_agent = LlmAgent(
    name="instructed",
    model=model(script),
    instruction=instruct,
    static_instruction="Always the same.",
    global_instruction="For all: {mood?}",
)
