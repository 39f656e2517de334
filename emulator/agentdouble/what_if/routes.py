"""``/_emulator/what-if``: what a request would have been answered under another answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble import guard, strict_json
from agentdouble.disconnects import cancel_on_disconnect
from agentdouble.errors import LedgerError
from agentdouble.guard import Refusal
from agentdouble.journal import Journal
from agentdouble.ledger import Ledger
from agentdouble.resending import CannotRepeatError
from agentdouble.signing import Credentials
from agentdouble.threads import import_in_thread
from agentdouble.what_if.beside import Beside
from agentdouble.what_if.values import Question, WhatIfError

if TYPE_CHECKING:
    from agentdouble.what_if.answering import Asking

_ANSWERING = "agentdouble.what_if.answering"
_SHAPE = (
    'The body must be {"entry": N, "unknown": "U-...", "answer": "alternative"}, with the id of a '
    "journal entry"
)
_LARGEST = 64 * 1024
_Refusals = (CannotRepeatError, LedgerError, ValueError, WhatIfError)


def what_if_routes(
    journal: Journal, in_force: Ledger, credentials: Credentials, beside: Beside
) -> list[Route]:
    """Return the routes, relative to the double's own prefix."""

    def make() -> Asking:
        from agentdouble.what_if.answering import Asking

        return Asking(journal, in_force, credentials, beside)

    return [Route("/what-if", _Routes(make).ask, methods=["POST"])]


class _Routes:
    def __init__(self, make: Callable[[], Asking]) -> None:
        self._make = make
        self._asking: Asking | None = None

    async def ask(self, request: Request) -> Response:
        """Ask a request of the journal again, on fresh doubles, under another answer.

        The answer shows what differs by more than ids and times. Earlier requests that it relied
        on are asked first, as far as the journal has them. All of their code runs again, on three
        doubles.
        """
        await import_in_thread(_ANSWERING)
        self._asking = self._asking or self._make()
        try:
            question = _question(await request.body())
            found = await cancel_on_disconnect(request.receive, self._asking.ask(question))
        except _Refusals as error:
            return guard.render_json(request, _refusal(error))
        return JSONResponse(found)


def _question(body: bytes) -> Question:
    if len(body) > _LARGEST:  # reading it would hold the loop
        raise ValueError(f"{_SHAPE}: it is larger than {_LARGEST} bytes.")
    try:
        document: Any = strict_json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{_SHAPE}: {error}.") from None
    if not isinstance(document, dict) or document.keys() != Question.__annotations__.keys():
        raise ValueError(f"{_SHAPE}.")
    entry, unknown, answer = document["entry"], document["unknown"], document["answer"]
    texts = isinstance(unknown, str) and isinstance(answer, str)
    if not texts or not isinstance(entry, int) or isinstance(entry, bool) or entry < 1:
        raise ValueError(f"{_SHAPE}.")
    return {"entry": entry, "unknown": unknown, "answer": answer}


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, WhatIfError):
        return Refusal(error.status, error.kind, str(error))
    if isinstance(error, CannotRepeatError):
        return Refusal(
            error.status, "NotFound" if error.status == 404 else "CannotRepeat", str(error)
        )
    return Refusal(
        400, "LedgerError" if isinstance(error, LedgerError) else "BadRequest", str(error)
    )
