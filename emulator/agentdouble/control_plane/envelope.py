"""The envelope of section 2.8 and its error form (U-ERROR-SHAPE)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from starlette.responses import JSONResponse, Response
from typing_extensions import NotRequired, TypedDict

from agentdouble import ledger
from agentdouble.control_plane.action_errors import PUBLIC, Refused
from agentdouble.errors import ActionError
from agentdouble.invoke_tool import DEFAULT_REGION, SERVICE

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


def _request_id() -> str:
    return uuid.uuid4().hex


@dataclass
class Metadata:
    """ResponseMetadata of one answer; region and service come from the signature's scope."""

    action: str
    version: str
    service: str = SERVICE
    region: str = DEFAULT_REGION
    request_id: str = field(default_factory=_request_id)

    def to_dict(self) -> MetadataFields:
        """Return the five fields of section 2.8."""
        return {
            "RequestId": self.request_id,
            "Action": self.action,
            "Version": self.version,
            "Service": self.service,
            "Region": self.region,
        }


def success(metadata: Metadata, result: Mapping[str, Any]) -> Response:
    """Return the answer of a successful action."""
    return JSONResponse({"ResponseMetadata": metadata.to_dict(), "Result": dict(result)})


def failure(metadata: Metadata, error: Refused) -> Response:
    """Return the answer of a refused action."""
    ledger.choose("U-ERROR-SHAPE")
    shown: ErrorFields = {"Code": error.code, "Message": str(error)}
    known = PUBLIC.get(error.code)
    if known is not None and known.number is not None:
        shown["CodeN"] = known.number
    if isinstance(error, ActionError) and error.data is not None:
        shown["Data"] = dict(error.data)
    body: Failure = {"ResponseMetadata": {**metadata.to_dict(), "Error": shown}}
    return JSONResponse(body, error.status)
