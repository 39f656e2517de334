"""The routes of what-if."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.core.ledger import Ledger
from agentdouble.core.signing import Credentials
from agentdouble.core.threads import import_in_thread
from agentdouble.errors import LedgerError
from agentdouble.journal.entries import Journal
from agentdouble.journal.resending import CannotRepeatError
from agentdouble.server import guard
from agentdouble.server.disconnects import cancel_on_disconnect
from agentdouble.server.guard import Refusal

if TYPE_CHECKING:
    from agentdouble.journal.what_if import StartDouble, WhatIf

Q = TypeVar("Q", bound=BaseModel)

_SHAPE = (
    'The body must be {"entry": N, "unknown": "U-...", "answer": "alternative"}, with the id of a '
    "journal entry."
)
_ANSWERS_SHAPE = (
    'The body must be {"entry": N, "alternatives": [{"U-...": "alternative"}]}, with the id of a '
    "journal entry and at most three alternatives."
)
_LARGEST = 64 * 1024  # bytes of a question; reading more would block the loop


def what_if_routes(
    journal: Journal, ledger: Ledger, credentials: Credentials, start: StartDouble
) -> list[Route]:
    """Return the routes, relative to the double's own prefix."""
    what_if: WhatIf | None = None

    async def loaded() -> WhatIf:
        nonlocal what_if
        await import_in_thread("agentdouble.journal.what_if")
        from agentdouble.journal.what_if import WhatIf  # slow: httpx

        what_if = what_if or WhatIf(journal, ledger, credentials, start)
        return what_if

    async def ask(request: Request) -> Response:
        """Send a request of the journal again, on fresh doubles, under another answer.

        The answer shows what differs by more than ids and times. Earlier requests on which it
        relies are sent first, as far as the journal has them. All of their code runs again, on
        three doubles.
        """
        asked = await loaded()
        from agentdouble.journal.what_if import WhatIfQuestion  # slow: httpx

        return await _answered(request, WhatIfQuestion, asked.ask, _SHAPE)

    async def answers(request: Request) -> Response:
        """Send a request again, on a fresh double for each alternative, and return the answers.

        They are complete, and have the ids that the running double gave.
        """
        asked = await loaded()
        from agentdouble.journal.what_if import AlternativesQuestion  # slow: httpx

        return await _answered(request, AlternativesQuestion, asked.answers, _ANSWERS_SHAPE)

    return [
        Route("/what-if", ask, methods=["POST"]),
        Route("/what-if/answers", answers, methods=["POST"]),
    ]


async def _answered(
    request: Request,
    model: type[Q],
    ask: Callable[[Q], Coroutine[Any, Any, dict[str, Any]]],
    shape: str,
) -> Response:
    from agentdouble.journal.what_if import WhatIfError  # slow: httpx

    body = await request.body()
    try:
        question = model.model_validate_json(body if len(body) <= _LARGEST else b"")
        return JSONResponse(await cancel_on_disconnect(request.receive, ask(question)))
    except WhatIfError as error:
        refusal = Refusal(error.status, error.kind, str(error))
    except CannotRepeatError as error:
        kind = "NotFound" if error.status == 404 else "CannotRepeat"
        refusal = Refusal(error.status, kind, str(error))
    except LedgerError as error:
        refusal = Refusal(400, "LedgerError", str(error))
    except ValidationError:
        refusal = Refusal(400, "BadRequest", shape)
    return guard.render_json(request, refusal)
