"""The model endpoint: a model that answers from a script or a recording.

Clients call it as OpenAI's chat completions (``chat_completions``) and responses
(``responses_api``), or as Gemini's generateContent (``gemini``). Each of these modules reads a
request into ``conversation.ConversationRequest`` and writes ``conversation.ModelAnswer`` in its
wire form, whole or as a stream. ``vendors`` finds whose wire form a request has, and writes
refusals.

``fields`` says what the model does with each field of a request. ``openai_fields`` and
``gemini_fields`` read those that limit an answer into ``demands``. ``scripts`` finds the answer to a
request, ``fitting`` makes it fit, and ``stored_responses`` keeps responses for later requests.
``embeddings`` answers from ``word_vectors``, without a script. ``recording`` passes requests on to a
real endpoint, and replays its answers. ``endpoint`` joins them, ``model_routes`` serves it, and
``admin_routes`` controls it.

``SHIPPED`` is the script of ``agentdouble serve``: it calls the tool ``run_code``, so that an agent
uses the sandbox without a key of any provider.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import HTTPConnection

from agentdouble.server import guard

PREFIX = "/model"


def presented(connection: HTTPConnection) -> Iterator[str]:
    """Yield what a request has in each place where a client of a model sends its key.

    Those of Gemini send it in a header of their own or in the query. Anthropic's and Azure's, whose
    routes are refused by name, send ``x-api-key`` and ``api-key``.
    """
    yield guard.bearer(connection)
    for name in ("x-goog-api-key", "x-api-key", "api-key"):
        yield connection.headers.get(name, "")
    yield connection.query_params.get("key", "")
