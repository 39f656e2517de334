"""A model that answers with all that an event can have."""

from google.adk.agents import LlmAgent
from google.adk.models import LlmResponse
from google.genai import types
from scripted import model


def script(request):
    parts = [
        types.Part(text="thinking", thought=True, thought_signature=b"\x01\xff"),
        types.Part(text="answer"),
        types.Part(executable_code=types.ExecutableCode(code="1", language="PYTHON")),
        types.Part(code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK")),
        types.Part(file_data=types.FileData(file_uri="gs://a/b", mime_type="text/plain")),
    ]
    return LlmResponse(
        content=types.Content(role="model", parts=parts),
        model_version="scripted-1",
        finish_reason=types.FinishReason.STOP,
        avg_logprobs=-0.5,
        turn_complete=True,
        custom_metadata={"k": [1, None, {"ü": True}]},
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=1, candidates_token_count=2, total_token_count=3
        ),
        grounding_metadata=types.GroundingMetadata(web_search_queries=["query"]),
        citation_metadata=types.CitationMetadata(citations=[types.Citation(uri="https://a.b")]),
        logprobs_result=types.LogprobsResult(log_probability_sum=-1.0),
    )


root_agent = LlmAgent(name="rich", model=model(script))
