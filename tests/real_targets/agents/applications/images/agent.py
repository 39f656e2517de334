"""An agent that is sent files, and answers with one."""

from google.adk.agents import LlmAgent
from google.genai import types
from scripted import model


def script(request):
    sent = [
        f"{part.inline_data.mime_type} {len(part.inline_data.data)}"
        for content in request.contents
        for part in content.parts
        if part.inline_data
    ]
    image = types.Part.from_bytes(data=b"\xfb\xff\x00", mime_type="image/png")
    return [types.Part(text=str(sent)), image]


root_agent = LlmAgent(name="viewer", model=model(script))
