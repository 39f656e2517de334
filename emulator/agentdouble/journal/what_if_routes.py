"""The route of what-if."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError
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
        await import_in_thread("agentdouble.journal.what_if")
        from agentdouble.journal.what_if import WhatIf, WhatIfError, WhatIfQuestion  # slow: httpx

        what_if = what_if or WhatIf(journal, ledger, credentials, start)
        body = await request.body()
        try:
            question = WhatIfQuestion.model_validate_json(body if len(body) <= _LARGEST else b"")
            result = await cancel_on_disconnect(request.receive, what_if.ask(question))
            return JSONResponse(result)
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
