"""The checks of callers: the signature (CTL-03) and the full-access permission (CTL-07)."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import NotRequired, TypedDict

from agentdouble.control_plane.public_errors import PUBLIC, Refused, public_error
from agentdouble.core import ledger, signing
from agentdouble.core.canonical_request import read_query
from agentdouble.core.clock import Clock
from agentdouble.core.invoke_tool import DEFAULT_REGION, SERVICE
from agentdouble.core.signing import Credentials
from agentdouble.errors import ActionError, SignatureError
from agentdouble.settings import KeyPair, Settings

Result_co = TypeVar("Result_co", covariant=True)


class MetadataFields(TypedDict):
    """The five fields of section 2.8."""

    RequestId: str
    Action: str
    Version: str
    Service: str
    Region: str


class Success(TypedDict, Generic[Result_co]):
    """The answer of a successful action."""

    ResponseMetadata: MetadataFields
    Result: Result_co


class ErrorFields(TypedDict):
    """An error of the control plane; CodeN is there if the number is published."""

    Code: str
    Message: str
    CodeN: NotRequired[int]
    Data: NotRequired[dict[str, Any]]


class FailureMetadata(MetadataFields):
    """The metadata of a refused action."""

    Error: ErrorFields


class Failure(TypedDict):
    """The answer of a refused action."""

    ResponseMetadata: FailureMetadata


def metadata_of(action: str, version: str) -> MetadataFields:
    """Return ResponseMetadata of one answer; region and service come from the signature's scope."""
    return {
        "RequestId": uuid.uuid4().hex,
        "Action": action,
        "Version": version,
        "Service": SERVICE,
        "Region": DEFAULT_REGION,
    }


def success(metadata: MetadataFields, result: Mapping[str, Any]) -> Response:
    """Return the answer of a successful action."""
    return JSONResponse({"ResponseMetadata": metadata, "Result": dict(result)})


def failure(metadata: MetadataFields, error: Refused) -> Response:
    """Return the answer of a refused action."""
    ledger.choose("U-ERROR-SHAPE")
    fields: ErrorFields = {"Code": error.code, "Message": str(error)}
    public = PUBLIC.get(error.code)
    if public is not None and public.number is not None:
        fields["CodeN"] = public.number
    headers = {}
    if isinstance(error, ActionError):
        if error.data is not None:
            fields["Data"] = dict(error.data)
        if error.retry_after_s is not None:
            headers["Retry-After"] = str(error.retry_after_s)
    body: Failure = {"ResponseMetadata": {**metadata, "Error": fields}}
    return JSONResponse(body, error.status, headers)


class Authenticator:
    """Checks requests against a double's key pairs: its ``primary`` one, and those of the settings.

    The primary key pair may call every action. A key without the full-access permission may
    call none (CTL-07).
    """

    def __init__(self, primary: Credentials, settings: Settings, clock: Clock) -> None:
        self._credentials = {key.access_key: key for key in (primary, *map(_of, settings.keys))}
        self._permitted = {primary.access_key: True} | {
            pair.access_key: pair.full_access for pair in settings.keys
        }
        self._checks = settings.check_signatures
        self._clock = clock

    def check(self, request: Request, body: bytes, metadata: MetadataFields) -> None:
        """Check a request, and read region and service from its signature's scope.

        Raises ActionError with the platform's code.
        """
        if not self._checks:
            return
        ledger.choose("U-SIGNING")
        ledger.choose("U-SIGNING-SKEW")
        try:
            names = Counter(request.headers.keys())
            authorization = signing.verify(
                signing.SignableRequest(
                    method=request.method,
                    path=request.scope["path"],
                    query=read_query(request.scope["query_string"]),
                    headers=dict(request.headers),
                    body=body,
                    repeated=frozenset(names - Counter(set(names))),
                ),
                credentials_of=self._credentials.get,
                wall=self._clock.wall(),
            )
        except SignatureError as error:
            raise public_error(error.code, str(error), error.data) from None
        metadata["Region"] = authorization.scope.region
        metadata["Service"] = authorization.scope.service
        access_key = authorization.access_key
        if not self._permitted[access_key]:
            raise public_error(
                "AccessDenied",
                f"User is not authorized to perform: {metadata['Service']}:{metadata['Action']} on "
                f"resource: *. The key {access_key} lacks the full-access permission.",
            )


def _of(pair: KeyPair) -> Credentials:
    token = pair.session_token
    return Credentials(
        pair.access_key,
        pair.secret_key.get_secret_value(),
        None if token is None else token.get_secret_value(),
    )
