"""An App whose plugin keeps uploads as artifacts."""

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins.save_files_as_artifacts_plugin import SaveFilesAsArtifactsPlugin
from google.adk.tools import load_artifacts
from scripted import asked, call, model


def script(request):
    if asked(request) == "load":
        return call("load_artifacts", artifact_names=["a.txt"])
    return " ".join(part.text or "file" for content in request.contents for part in content.parts)


app = App(
    name="upload_plugin",
    root_agent=LlmAgent(name="keeper", model=model(script), tools=[load_artifacts]),
    plugins=[SaveFilesAsArtifactsPlugin()],
)
