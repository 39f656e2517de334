"""``/_emulator/what-if``: what a request would have been answered under another answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble import guard
from agentdouble.disconnects import cancel_on_disconnect
from agentdouble.errors import LedgerError
from agentdouble.guard import Refusal
from agentdouble.journal import Journal
from agentdouble.ledger import Ledger
from agentdouble.resending import CannotRepeatError
from agentdouble.signing import Credentials
from agentdouble.threads import import_in_thread
from agentdouble.what_if import StartDouble

if TYPE_CHECKING:
    from agentdouble.what_if.answering import WhatIf

_SHAPE = (
    'The body must be {"entry": N, "unknown": "U-...", "answer": "alternative"}, with the id of a '
    "journal entry."
)
_LARGEST = 64 * 1024  # bytes of a question; reading more would block the loop


def what_if_routes(
    journal: Journal, ledger: Ledger, credentials: Credentials, start: StartDouble
) -> list[Route]:
    """Return the route, relative to the double's own prefix."""
    what_if: WhatIf | None = None

    async def ask(request: Request) -> Response:
        """Send a request of the journal again, on fresh doubles, under another answer.

        The answer shows what differs by more than ids and times. Earlier requests on which it
        relies are sent first, as far as the journal has them. All of their code runs again, on
        three doubles.
        """
        nonlocal what_if
        await import_in_thread("agentdouble.what_if.answering")
        from agentdouble.what_if.answering import Question, WhatIf, WhatIfError

        what_if = what_if or WhatIf(journal, ledger, credentials, start)
        body = await request.body()
        try:
            question = Question.model_validate_json(body if len(body) <= _LARGEST else b"")
            found = await cancel_on_disconnect(request.receive, what_if.ask(question))
            return JSONResponse(found)
        except WhatIfError as error:
            refusal = Refusal(error.status, error.kind, str(error))
        except CannotRepeatError as error:
            kind = "NotFound" if error.status == 404 else "CannotRepeat"
            refusal = Refusal(error.status, kind, str(error))
        except LedgerError as error:
            refusal = Refusal(400, "LedgerError", str(error))
        except ValidationError:
            refusal = Refusal(400, "BadRequest", _SHAPE)
        return guard.render_json(request, refusal)

    return [Route("/what-if", ask, methods=["POST"])]
