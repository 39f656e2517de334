"""The routes of the model in each vendor's paths, and refusals in each vendor's form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.errors import AgentDoubleError

pytestmark = pytest.mark.smoke

VERTEX = "projects/p/locations/us-central1/publishers/google/"
GEMINI_PATHS = (
    *("v1", "v1beta", "v1alpha"),
    *("v1beta1/publishers/google", f"v1/{VERTEX}".rstrip("/"), f"v1beta1/{VERTEX}".rstrip("/")),
)
HELLO = {"contents": [{"role": "user", "parts": [{"text": "Say hello to us"}]}]}
SCRIPT = {"steps": [{"text": "Hello.", "times": "all"}]}


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double whose model always says the same."""
    with Emulator(model_scripts=[SCRIPT]) as double:
        yield double


def call(
    double: Emulator, method: str, path: str, form: str = "openai", body: Any = None
) -> httpx.Response:
    """Send a request with the key where a vendor's client sends it."""
    key = double.environment("model")["OPENAI_API_KEY"]
    headers = {
        "openai": {"Authorization": f"Bearer {key}"},
        "gemini": {"x-goog-api-key": key},
        "vertex": {"Authorization": f"Bearer {key}", "x-goog-api-client": "google-genai-sdk/3"},
        "azure": {"api-key": key},
        "anthropic": {"x-api-key": key, "anthropic-version": "2023-06-01"},
    }[form]
    return httpx.request(method, f"{double.url}/model/{path}", headers=headers, json=body)


@pytest.mark.parametrize("path", GEMINI_PATHS)
def test_gemini_is_served_in_every_version_and_in_vertex_paths(double: Emulator, path: str) -> None:
    model = f"{path}/models/gemini-2.5-flash"

    whole = call(double, "POST", f"{model}:generateContent", "vertex", HELLO).json()
    stream = call(double, "POST", f"{model}:streamGenerateContent?alt=sse", "gemini", HELLO)
    counted = call(double, "POST", f"{model}:countTokens", "gemini", HELLO).json()
    listed = call(double, "GET", f"{path}/models", "gemini").json()
    one = call(double, "GET", model, "vertex").json()

    assert "Hello." == whole["candidates"][0]["content"]["parts"][0]["text"]
    assert "data: " in stream.text
    assert {"totalTokens": 4} == counted
    (models,) = listed.values()
    assert ["models/scripted"] == [item["name"] for item in models]
    assert "models/gemini-2.5-flash" == one["name"]
    assert "generateContent" in one["supportedGenerationMethods"]


def test_the_key_may_be_in_the_query(double: Emulator) -> None:
    key = double.environment("model")["GEMINI_API_KEY"]
    address = f"{double.url}/model/v1/models/m:generateContent"

    assert 200 == httpx.post(f"{address}?key={key}", json=HELLO).status_code
    refused = httpx.post(f"{address}?key=wrong", json=HELLO)
    assert "UNAUTHENTICATED" == refused.json()["error"]["status"]
    assert key not in str(double.journal.entries())


@pytest.mark.parametrize("name", ["gpt-4o", "ft:gpt-4o:org::id", "openai/gpt-4o"])
def test_openai_describes_one_model(double: Emulator, name: str) -> None:
    one = call(double, "GET", f"v1/models/{name}")

    assert (200, name, "model") == (one.status_code, one.json()["id"], one.json()["object"])


def test_a_model_that_does_not_exist_is_refused_in_both_forms() -> None:
    with Emulator() as double:
        own = {"Authorization": f"Bearer {double.token}"}
        httpx.post(f"{double.url}/_emulator/model", json={"models": ["gpt-4o"]}, headers=own)

        openai = call(double, "GET", "v1/models/gpt-4")
        gemini = call(double, "GET", "v1/models/gpt-4", "gemini")

    assert (404, "model_not_found") == (openai.status_code, openai.json()["error"]["code"])
    assert (404, "NOT_FOUND") == (gemini.status_code, gemini.json()["error"]["status"])
    assert "Did you mean gpt-4o?" in gemini.text


NOT_BUILT = [
    *(("POST", f"v1/{path}", "openai") for path in ("audio/speech", "images/generations")),
    *(("POST", f"v1/{path}", "openai") for path in ("completions", "moderations", "files")),
    *(("GET", f"v1/{path}", "openai") for path in ("chat/completions", "assistants", "")),
    *(("DELETE", f"v1/{path}", "openai") for path in ("models/gpt-4o", "chat/completions/x")),
    *(("PUT", path, "openai") for path in ("v1/responses", "v1/models", "", "chat/completions")),
    *(("POST", f"v1beta/{path}", "gemini") for path in ("cachedContents", "interactions", "x")),
    *(("POST", f"v1/{path}", "gemini") for path in ("files", "batches", "models")),
    *(("POST", f"v1/models/m:{name}", "gemini") for name in ("predict2", "batchGenerateContent")),
    *(("DELETE", path, "gemini") for path in ("v1beta/models/m", "v1beta/v1beta/models")),
    ("POST", "openai/deployments/gpt-4o/chat/completions", "azure"),
    *(("POST", path, "anthropic") for path in ("v1/messages", "v1/messages/count_tokens")),
]


@pytest.mark.parametrize(("method", "path", "form"), NOT_BUILT)
def test_what_is_not_built_is_refused_in_the_vendors_form(
    double: Emulator, method: str, path: str, form: str
) -> None:
    """The message has the request and what is there; the status is one of a client's mistake."""
    refused = call(double, method, path, form, {} if method == "POST" else None)

    assert refused.status_code in (404, 405, 501), refused.text
    assert ("Allow" in refused.headers) == (refused.status_code == 405)
    error = refused.json()["error"]
    if form == "gemini":
        assert {"message", "code", "status"} == error.keys()
        assert refused.status_code == error["code"]
        assert "generateContent" in error["message"]
    elif form == "anthropic":
        assert ("error", "not_found_error") == (refused.json()["type"], error["type"])
        assert "litellm" in error["message"]
    else:
        assert {"message", "type", "param", "code"} == error.keys()
        assert f"no {method} /{path}" in error["message"]
        assert "POST /v1/chat/completions" in error["message"]


@pytest.mark.parametrize("calls", [[["run_code", {"code": "1"}]], "run_code", 1])
def test_calls_of_another_form_are_told_what_a_call_is(calls: object) -> None:
    """Where the script comes from a file."""
    script = {"steps": [{"calls": calls}]}

    with pytest.raises(AgentDoubleError, match=r'such as \{ name = "run_code", arguments'):
        Emulator(model_scripts=[script]).start()


def test_clients_of_gemini_are_not_sent_to_the_vendor(double: Emulator) -> None:
    """By neither of the names that a version of google-genai reads."""
    variables = double.environment("model")

    assert ["false", "false"] == [
        variables[f"GOOGLE_GENAI_USE_{name}"] for name in ("ENTERPRISE", "VERTEXAI")
    ]
