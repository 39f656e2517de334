"""A2A applications whose card names their own port, as written without a gateway in mind."""

from __future__ import annotations

import os
from typing import Any

from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble import A2AApp, agent_card

OWN = f"http://localhost:{os.environ.get('PORT')}"
ELSEWHERE = "https://elsewhere.example/a2a"

app = A2AApp("carded", runner="echo", card=agent_card("carded", OWN))


def _interfaces() -> list[dict[str, Any]]:
    hosts = (OWN + "/", OWN.replace("localhost", "0.0.0.0") + "/rpc?a=b", ELSEWHERE)
    return [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for url in hosts]


async def _card(request: Request) -> JSONResponse:
    card: dict[str, Any] = {
        "name": "é" * 1000,  # enough to be compressed
        "supportedInterfaces": _interfaces(),
        "provider": {"url": OWN},
    }
    if request.url.path.startswith("/signed"):
        card["signatures"] = [{"protected": "e30", "signature": "x"}]
    return JSONResponse(card, headers={"ETag": '"one"'})


async def _large(request: Request) -> Response:
    return Response(f'{{"url": "{OWN}", "name": "{"x" * 2**20}"}}', media_type="application/json")


CARD = "/.well-known/agent-card.json"
anything = GZipMiddleware(
    Starlette(
        routes=[
            Route(CARD, _card),
            Route("/signed" + CARD, _card),
            Route("/large" + CARD, _large),
            Route("/other.json", _card),
        ]
    )
)
