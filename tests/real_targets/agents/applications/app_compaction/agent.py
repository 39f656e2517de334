"""An App that summarizes its history after every second turn."""

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from scripted import echo, model

summarizer = LlmEventSummarizer(llm=model(lambda request: "a summary"))
app = App(
    name="app_compaction",
    root_agent=LlmAgent(name="compact", model=model(echo)),
    events_compaction_config=EventsCompactionConfig(
        summarizer=summarizer, compaction_interval=2, overlap_size=0
    ),
)
