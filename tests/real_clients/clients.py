"""The clients: their environments, their programs, and the parts of these."""

from __future__ import annotations

from dataclasses import dataclass

from tests.real_clients.environments import Environment, Npm, Python

SESSIONS = ("with sessions",)
ERAS = ("with sessions", "without sessions")
A2A_1 = ("1.0 JSONRPC", "1.0 HTTP+JSON", "keys")
A2A_0_3 = ("0.3 JSONRPC", "keys")
MODEL = ("tool agent", "retrieval agent")


@dataclass(frozen=True)
class Client:
    """A client: its name, its program in ``programs/``, and the parts of that program."""

    name: str
    environment: Environment
    program: str
    parts: tuple[str, ...]


def _python(name: str, package: str, needs: str, program: str, parts: tuple[str, ...]) -> Client:
    return Client(name, Python(package, (needs,)), program, parts)


CLIENTS = (
    _python("mcp-1.26", "mcp", "mcp==1.26.*", "mcp_1", SESSIONS),
    _python("mcp-2", "mcp", "mcp>=2.3,<3", "mcp_2", ERAS),
    _python("fastmcp-2", "fastmcp", "fastmcp>=2,<3", "fastmcp_any", SESSIONS),
    _python("fastmcp", "fastmcp", "fastmcp>=4", "fastmcp_any", ERAS),
    _python(
        "langchain-mcp-adapters",
        "langchain-mcp-adapters",
        "langchain-mcp-adapters",
        "langchain_adapters",
        SESSIONS,
    ),
    _python("openai-agents", "openai-agents", "openai-agents", "openai_agents", SESSIONS + MODEL),
    _python(
        "openai", "openai", "openai>=3", "openai_sdk", (*MODEL, "responses", "fields of OpenAI")
    ),
    _python(
        "google-genai",
        "google-genai",
        "google-genai>=3",
        "google_genai_sdk",
        (*MODEL, "fields of Gemini"),
    ),
    Client(
        "langchain",
        Python("langchain", ("langchain", "langchain-openai", "langchain-google-genai", "numpy")),
        "langchain_models",
        MODEL,
    ),
    _python(
        "pydantic-ai",
        "pydantic-ai-slim",
        "pydantic-ai-slim[google,openai]",
        "pydantic_ai_agents",
        MODEL,
    ),
    _python("litellm", "litellm", "litellm", "litellm_models", MODEL),
    Client(
        "veadk",
        Python(
            "veadk-python",
            ("veadk-python", "llama-index-core", "llama-index-embeddings-openai-like"),
        ),
        "veadk_agents",
        MODEL,
    ),
    Client("typescript-sdk-1", Npm("@modelcontextprotocol/sdk"), "typescript_1", SESSIONS),
    Client("typescript-sdk-2", Npm("@modelcontextprotocol/client"), "typescript_2", ERAS),
    _python("a2a-sdk-0.3", "a2a-sdk", "a2a-sdk[http-server]>=0.3.20,<0.4", "a2a_0_3", A2A_0_3),
    _python("a2a-sdk-1", "a2a-sdk", "a2a-sdk[http-server]>=1.3,<2", "a2a_1", A2A_1),
    Client("a2a-js-0.3", Npm("a2a-js-0.3"), "a2a_js_0_3", A2A_0_3),
    Client("a2a-js-1", Npm("@a2a-js/sdk"), "a2a_js", A2A_1),
    Client("jupyterlab-services", Npm("@jupyterlab/services"), "jupyterlab_services", ("kernels",)),
    _python(
        "google-adk",
        "google-adk",
        "google-adk[a2a,mcp]>=2.13",
        "google_adk",
        ("RemoteA2aAgent", "McpToolset", *MODEL),
    ),
)
