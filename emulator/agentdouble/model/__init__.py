"""The model endpoint: a model that answers from a script or a recording.

Clients call it as OpenAI's chat completions (``chat_completions``) and responses
(``responses_api``), or as Gemini's generateContent (``gemini``). Each of these modules reads a
request into ``conversation.ModelRequest`` and writes ``conversation.Answer`` in its wire form, whole
or as a stream. ``scripts`` finds the answer of a request. ``recording`` passes requests on to a real
endpoint, and replays its answers. ``endpoint`` joins them, and ``model_routes`` serves it.

``SHIPPED`` is the script of ``agentdouble serve``: it calls the tool ``run_code``, so that an agent
uses the sandbox without a key of any provider.
"""

from __future__ import annotations

PREFIX = "/model"
