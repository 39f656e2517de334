"""What the model does with each field of a request: honours, ignores or refuses it.

A field that stands in no table is refused, as the vendors do. The documentation has these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import ModelError
from agentdouble.model.conversation import Body

_ONLY_TEXT = "a script has only text and calls of tools."
BUILT_IN = "a script uses only tools of the agent; give it a function of that purpose."
_ONLY_WORDS = "the double embeds only text."
_NO_STORE = "the double keeps none; send everything in the request."


@dataclass(frozen=True)
class Refused:
    """Why a field is refused; the ``accepted`` values say what happens anyway, and null is one."""

    reason: str
    accepted: tuple[Any, ...] = ()


@dataclass(frozen=True)
class FieldTable:
    """The fields of a wire form. Those of an object have its name and a dot in front.

    ``extensions`` have no effect, too; the vendor has no such fields, but other endpoints of the
    wire form have. With ``is_gemini`` a name may be in snake case, as in any JSON of protobuf.
    """

    form: str
    honoured: frozenset[str]
    without_effect: frozenset[str]
    refused: Mapping[str, Refused]
    extensions: frozenset[str] = frozenset()
    is_gemini: bool = False

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that the table has."""
        return self.honoured | self.without_effect | self.refused.keys() | self.extensions

    @cached_property
    def _parents(self) -> frozenset[str]:
        return frozenset(name.rpartition(".")[0] for name in self.names)

    def check(self, document: Body, parent: str = "") -> None:
        """Raise ModelError for a field that is refused, and for one that nobody knows."""
        for name, value in document.items():
            path = f"{parent}{camel(name) if self.is_gemini else name}"
            if path not in self.names:
                raise self._unknown(name, parent, path)
            refused = self.refused.get(path)
            if refused is not None and value is not None and value not in refused.accepted:
                raise ModelError(
                    f"{path} is not supported: {refused.reason}",
                    code="unsupported_parameter",
                    param=path,
                )
            if path in self._parents and value is not None:
                if not isinstance(value, dict):
                    raise ModelError(f"{path} must be an object, not {value!r:.80}.", param=path)
                self.check(value, f"{path}.")

    def _unknown(self, name: str, parent: str, path: str) -> ModelError:
        """Return the error of the vendor, with the field that may have been meant."""
        hint = did_you_mean(path, self.names)
        if self.is_gemini:
            return unknown_name(name, parent.rstrip("."), hint)
        text = f"Unknown parameter: {path!r:.100}.{hint}"
        return ModelError(text, code="unknown_parameter", param=path)


def unknown_name(name: str, place: str, hint: str = "") -> ModelError:
    """Return Gemini's error for a field that it does not have."""
    where = f" at {place!r}" if place else ""
    return ModelError(
        f"Invalid JSON payload received. Unknown name {name!r:.100}{where}: Cannot find field."
        f"{hint}"
    )


def camel(name: str) -> str:
    """Return a name in camel case: ``max_output_tokens`` is ``maxOutputTokens``."""
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def get(document: Body, name: str) -> Any:
    """Return a field of Gemini's by its name in camel case, whichever way it is spelled."""
    if name in document:
        return document[name]
    return next((value for key, value in document.items() if camel(key) == name), None)


_OTHER_ENDPOINTS = frozenset(
    {
        *("caching", "expire_at", "thinking"),  # veadk sends them
        *("chat_template_kwargs", "enable_thinking", "min_p", "repetition_penalty", "top_k"),
    }
)
CHAT_COMPLETIONS = FieldTable(
    "chat completions",
    honoured=frozenset(
        {
            *("logprobs", "max_completion_tokens", "max_tokens", "messages", "model"),
            *("parallel_tool_calls", "response_format", "stop", "stream", "stream_options"),
            *("stream_options.include_usage", "tool_choice", "tools", "top_logprobs"),
        }
    ),
    without_effect=frozenset(
        {
            *("frequency_penalty", "logit_bias", "metadata", "prediction", "presence_penalty"),
            *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
            *("reasoning_effort", "safety_identifier", "seed", "service_tier", "store"),
            *("stream_options.include_obfuscation", "temperature", "top_p", "user", "verbosity"),
        }
    ),
    refused={
        "audio": Refused(_ONLY_TEXT),
        "function_call": Refused("use tool_choice, which replaced it."),
        "functions": Refused("use tools, which replaced it."),
        "modalities": Refused(_ONLY_TEXT, (["text"],)),
        "moderation": Refused("nothing is moderated here."),
        "n": Refused("a script has one answer for each request.", (1,)),
        "web_search_options": Refused(BUILT_IN),
    },
    extensions=_OTHER_ENDPOINTS,
)
RESPONSES = FieldTable(
    "responses",
    honoured=frozenset(
        {
            *("background", "include", "input", "instructions", "max_output_tokens", "model"),
            *("parallel_tool_calls", "previous_response_id", "store", "stream", "text"),
            *("text.format", "tool_choice", "tools", "top_logprobs"),
        }
    ),
    without_effect=frozenset(
        {
            *("access_programs", "background_options", "context_management", "image"),
            *("max_tool_calls", "metadata", "prompt_cache_key", "prompt_cache_options"),
            *("prompt_cache_retention", "reasoning", "safety_identifier", "service_tier"),
            *("stream_options", "stream_options.include_obfuscation", "temperature"),
            *("text.verbosity", "top_p", "truncation", "user"),
        }
    ),
    refused={
        "conversation": Refused("use previous_response_id, or send the whole as input."),
        "moderation": Refused("nothing is moderated here."),
        "prompt": Refused("the double has no stored prompts; send instructions and input."),
    },
    extensions=_OTHER_ENDPOINTS,
)


def _within(parent: str, *names: str) -> list[str]:
    return [f"{parent}.{name}" for name in names]


_CONFIG = "generationConfig"
_CALLING = "toolConfig.functionCallingConfig"
GENERATE_CONTENT = FieldTable(
    "generateContent",
    honoured=frozenset(
        {
            *("contents", _CONFIG, "systemInstruction", "toolConfig", "tools"),
            *(_CALLING, *_within(_CALLING, "allowedFunctionNames", "mode")),
            *_within(_CONFIG, "logprobs", "maxOutputTokens", "responseJsonSchema"),
            *_within(_CONFIG, "responseLogprobs", "responseMimeType", "responseSchema"),
            *_within(_CONFIG, "stopSequences"),
        }
    ),
    without_effect=frozenset(
        {
            *("labels", "model", "safetySettings", "serviceTier", "store"),
            *_within("toolConfig", "includeServerSideToolInvocations", "retrievalConfig"),
            *_within(_CONFIG, "audioTimestamp", "enableAffectiveDialog"),
            *_within(_CONFIG, "enableEnhancedCivicAnswers", "frequencyPenalty"),
            *_within(_CONFIG, "mediaResolution", "modelConfig", "modelSelectionConfig"),
            *_within(_CONFIG, "presencePenalty", "routingConfig", "seed", "temperature"),
            *_within(_CONFIG, "thinkingConfig", "topK", "topP"),
        }
    ),
    refused={
        "cachedContent": Refused(_NO_STORE),
        "continuationToken": Refused("every answer of a script is complete."),
        "modelArmorConfig": Refused("nothing is moderated here."),
        "outputConfig": Refused("an answer is only in the response."),
        f"{_CALLING}.streamFunctionCallArguments": Refused(
            "the arguments of a call are sent at once.", (False,)
        ),
        f"{_CONFIG}.audioTranscriptionConfig": Refused(_ONLY_TEXT),
        f"{_CONFIG}.candidateCount": Refused("a script has one answer for each request.", (1,)),
        f"{_CONFIG}.imageConfig": Refused(_ONLY_TEXT),
        f"{_CONFIG}.responseFormat": Refused("use responseMimeType and responseJsonSchema.", ([],)),
        f"{_CONFIG}.responseModalities": Refused(_ONLY_TEXT, ([], ["TEXT"], ["text"])),
        f"{_CONFIG}.speechConfig": Refused(_ONLY_TEXT),
        f"{_CONFIG}.translationConfig": Refused(_ONLY_TEXT),
    },
    is_gemini=True,
)
EMBEDDINGS = FieldTable(
    "embeddings",
    honoured=frozenset({"dimensions", "encoding_format", "input", "model"}),
    without_effect=frozenset({"user"}),
    refused={},
)
_EMBED_CONFIG = "embedContentConfig"
EMBED_CONTENT = FieldTable(
    "embedContent",
    honoured=frozenset(
        {
            *("content", "outputDimensionality", "title", _EMBED_CONFIG),
            *_within(_EMBED_CONFIG, "outputDimensionality", "title"),
        }
    ),
    without_effect=frozenset(
        {"model", "taskType", *_within(_EMBED_CONFIG, "autoTruncate", "taskType")}
    ),
    refused={
        f"{_EMBED_CONFIG}.audioTrackExtraction": Refused(_ONLY_WORDS, (False,)),
        f"{_EMBED_CONFIG}.documentOcr": Refused(_ONLY_WORDS, (False,)),
    },
    is_gemini=True,
)
BATCH_EMBED_CONTENTS = FieldTable(
    "batchEmbedContents",
    honoured=frozenset({"requests"}),
    without_effect=frozenset({"model"}),
    refused={},
    is_gemini=True,
)
PREDICT = FieldTable(
    "predict",
    honoured=frozenset({"instances", "parameters", "parameters.outputDimensionality"}),
    without_effect=frozenset({"parameters.autoTruncate"}),
    refused={},
    is_gemini=True,
)
PREDICT_INSTANCE = FieldTable(
    "an instance of predict",
    honoured=frozenset({"content", "title"}),
    without_effect=frozenset({"mimeType", "taskType"}),
    refused={},
    is_gemini=True,
)
PARTS = {  # the kinds of parts that a message may have; a script reads those that are text
    "chat completions": (
        *("text", "refusal", "image_url", "input_audio", "file"),
        "video_url",  # not OpenAI's, but veadk sends it
    ),
    "responses": (
        *("input_text", "output_text", "refusal", "input_image", "input_audio", "input_file"),
        *("computer_screenshot", "reasoning_text", "summary_text", "text"),
    ),
    "generateContent": (
        *("text", "functionCall", "functionResponse", "fileData", "inlineData"),
        *("codeExecutionResult", "executableCode", "toolCall", "toolResponse"),
        *("audioMetadata", "audioTranscription", "documentMetadata", "mediaProcessing"),
        *("mediaResolution", "partMetadata", "speechMetadata", "spreadsheetMetadata"),
        *("thought", "thoughtSignature", "videoMetadata"),
    ),
}
TOOLS = {  # the kinds of tools, of which a script can call these
    "chat completions": ("function", "custom"),
    "responses": ("function", "custom"),
    "generateContent": ("functionDeclarations",),
}
