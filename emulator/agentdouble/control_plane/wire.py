"""Request bodies as pydantic models, error codes, and the addresses in answers.

A model declares only the fields that the double uses; all other fields are in the journal's
``unread``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args
from urllib.parse import urlencode

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError
from typing_extensions import NotRequired, TypedDict

from agentdouble import errors
from agentdouble.core import ledger
from agentdouble.journal.entries import note_unread
from agentdouble.processes.workspace import RESERVED
from agentdouble.sandbox.data_plane.session_token import INSTANCE, TOKEN
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.workbench.wire import HOME

MAX_TTL_S = 86_400
_PUBLISHED_CHARS = re.compile(r"[A-Za-z0-9_-]{1,200}")
_ENVS_LIMIT = 64 * 1024

_Model = TypeVar("_Model", bound=BaseModel)


class Wire(BaseModel):
    """A JSON object of a request; types are checked strictly and never converted."""

    model_config = ConfigDict(strict=True, frozen=True)


def read(model: type[_Model], document: Mapping[str, Any], prefix: str = "") -> _Model:
    """Return a document as a model; note the fields that the model does not have.

    ``prefix`` stands before the names of fields in messages and in the journal, for example
    ``"OperationPayload."``. Raises ActionError MissingParameter or InvalidParameter, with the
    name of the field.
    """
    try:
        body = model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = prefix + ".".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            raise missing(field) from None
        raise invalid(field, first["msg"]) from None
    note_unread(_unread(body, document, prefix))
    return body


def _unread(value: Any, document: Any, path: str) -> Iterator[str]:
    """Yield the paths of ``document`` that ``value``, which was read from it, does not have."""
    if isinstance(value, BaseModel) and isinstance(document, Mapping):
        names = {field.alias or name: name for name, field in type(value).model_fields.items()}
        for key, inner in document.items():
            if key not in names:
                yield f"{path}{key}"
            else:
                yield from _unread(getattr(value, names[key]), inner, f"{path}{key}.")
    elif isinstance(value, Mapping) and isinstance(document, Mapping):
        for key, inner in document.items():
            yield from _unread(value.get(key), inner, f"{path}{key}.")
    elif isinstance(value, (list, tuple)) and isinstance(document, (list, tuple)):
        for index, (element, inner) in enumerate(zip(value, document, strict=False)):
            yield from _unread(element, inner, f"{path}{index}.")


def _numeric_string(value: Any) -> Any:
    """Accept ``"1800"`` for 1800, because some real clients send the string from an environment."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return value


Seconds = Annotated[int, Field(ge=1, le=MAX_TTL_S), BeforeValidator(_numeric_string)]
Validity = Annotated[int, Field(ge=1), BeforeValidator(_numeric_string)]
Unit = Literal["second", "minute"]


def ttl_in_seconds(ttl: int, unit: Unit | None) -> int:
    """Return a lifetime in seconds (U-TOOL-TTL-UNIT); raise ActionError if it is too long."""
    seconds = ttl * 60 if (unit or ledger.choose("U-TOOL-TTL-UNIT")) == "minute" else ttl
    if seconds > MAX_TTL_S:
        raise invalid("Ttl", f"it must not exceed {MAX_TTL_S} seconds")
    return seconds


def check_user_session_id(value: str) -> None:
    """Refuse an id with forbidden characters (U-USER-SESSION-CHARS)."""
    if ledger.choose("U-USER-SESSION-CHARS") == "printable":
        if not (1 <= len(value) <= 200 and value.isprintable()):
            raise invalid("UserSessionId", "it must have 1 to 200 printable characters")
    elif not _PUBLISHED_CHARS.fullmatch(value):
        raise invalid(
            "UserSessionId",
            f"{value[:200]!r} must be 1 to 200 letters, digits, '_' and '-'. run_code builds it "
            "from agent, user_id and session_id; the alternative 'printable' of "
            "U-USER-SESSION-CHARS allows other characters",
        )


class Env(Wire):
    """An environment variable."""

    Key: str = Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")
    Value: str | None = Field(None, pattern="^[^\0]*$")


def _check_envs(envs: Sequence[Env]) -> Sequence[Env]:
    names = [env.Key for env in envs]
    for env in envs:
        # the platform's command line sends the HOME that each sandbox has
        if env.Key in RESERVED and (env.Key, env.Value) != ("HOME", HOME):
            raise _wrong(f"the sandbox itself sets {env.Key}")
        if names.count(env.Key) > 1:
            raise _wrong(f"{env.Key[:100]!r} occurs twice")
    if sum(len(env.Key) + len(env.Value or "") for env in envs) > _ENVS_LIMIT:
        raise _wrong(f"together they exceed {_ENVS_LIMIT} characters")
    return envs


def _wrong(reason: str) -> PydanticCustomError:
    return PydanticCustomError("envs", "{reason}", {"reason": reason})


EnvList = Annotated[list[Env], AfterValidator(_check_envs)]


def variables(envs: Sequence[Env] | None) -> Mapping[str, str]:
    """Return environment variables by name."""
    return {env.Key: env.Value or "" for env in envs or ()}


def stamp(at: dt.datetime) -> str:
    """Return a time as the platform shows it, in UTC and whole seconds."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _moment(value: Any) -> Any:
    """Return an ISO-8601 time as a datetime in UTC; a time without a zone is in UTC."""
    if not isinstance(value, str):
        raise PydanticCustomError("moment", "it must be a string with an ISO-8601 time")
    try:
        moment = dt.datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", value))
        return (
            moment.replace(tzinfo=dt.timezone.utc) if moment.tzinfo is None else moment
        ).astimezone(dt.timezone.utc)
    except (ValueError, OverflowError):
        message = "it is not an ISO-8601 time such as 2030-01-31T12:00:00Z"
        raise PydanticCustomError("moment", message) from None


Moment = Annotated[dt.datetime, BeforeValidator(_moment)]


Refused: TypeAlias = (
    errors.ActionError
    | errors.DefinitionError
    | errors.HostingError
    | errors.McpServiceError
    | errors.NotBuiltError
    | errors.SandboxError
    | errors.StateError
)
REFUSED: tuple[type[Refused], ...] = get_args(Refused)  # for ``except``


@dataclass(frozen=True)
class Code:
    """A public error code: its number, if the number is published, and its HTTP status."""

    number: int | None
    status: int


PUBLIC: dict[str, Code] = {
    "MissingParameter": Code(100002, 400),
    "MissingAuthenticationToken": Code(100003, 401),
    "MissingRequestInfo": Code(100004, 400),
    "MissingSignature": Code(100005, 401),
    "InvalidTimestamp": Code(100006, 400),
    "ServiceNotFound": Code(100007, 404),
    "InvalidActionOrVersion": Code(100008, 404),
    "InvalidAccessKey": Code(100009, 401),
    "SignatureDoesNotMatch": Code(100010, 401),
    "LackPolicy": Code(100012, 403),
    "AccessDenied": Code(100013, 403),
    "InvalidSecurityToken": Code(None, 401),  # real clients know it; it has no published number
}


def public_error(
    code: str, message: str, data: Mapping[str, Any] | None = None
) -> errors.ActionError:
    """Return an error of the public table, with its HTTP status."""
    return errors.ActionError(code, message, status=PUBLIC[code].status, data=data)


def missing(field: str) -> errors.ActionError:
    """Return the refusal of a request that lacks a field."""
    return public_error("MissingParameter", f"The request is missing {field} parameter.")


def invalid(field: str, reason: str) -> errors.ActionError:
    """Return the refusal of a field's value; ``reason`` is a clause without a full stop."""
    return errors.ActionError("InvalidParameter", f"The parameter {field} is invalid: {reason}.")


_base_url: ContextVar[str] = ContextVar("agentdouble_base_url")


@contextmanager
def seen_at(base_url: str) -> Iterator[None]:
    """Let ``endpoint`` build URLs below ``base_url`` inside the block."""
    token = _base_url.set(base_url.rstrip("/"))
    try:
        yield
    finally:
        _base_url.reset(token)


def base_url() -> str:
    """Return the URL that the client used for the double, without a trailing slash."""
    return _base_url.get()


def endpoint(instance: Instance) -> str:
    """Return the URL of an instance; a client inserts a path and keeps the query.

    ``http://127.0.0.1:8000/?faasInstanceName=s-...&Authorization=...``. Raises LookupError
    outside of ``seen_at``.
    """
    query = urlencode({INSTANCE: instance.id, TOKEN: instance.token})
    return f"{base_url()}/?{query}"


class Network(Wire):
    """The networks that reach a resource; stored and shown."""

    VpcConfiguration: dict[str, Any] | None = None
    EnablePrivateNetwork: bool | None = None
    EnablePublicNetwork: bool | None = None


class Tag(Wire):
    """A tag."""

    Key: str
    Type: str | None = None
    Value: str | None = None


class ByKey(Wire):
    """A key that clients must send."""

    ApiKey: str | None = None
    ApiKeyLocation: str | None = None
    ApiKeyName: str | None = None


class ByToken(Wire):
    """A token that clients must send."""

    AllowedClients: list[str] | None = None
    DiscoveryUrl: str


class Authorizer(Wire):
    """How clients authenticate; stored and shown."""

    CustomJwtAuthorizer: ByToken | None = None
    KeyAuth: ByKey | None = None


class Tls(Wire):
    """The destination of logs; stored and shown."""

    EnableLog: bool
    TlsProjectId: str | None = None
    TlsTopicId: str | None = None


class NetworkConfiguration(TypedDict):
    """A network that reaches a resource, and the address there."""

    NetworkType: str
    Endpoint: str
    VpcConfiguration: NotRequired[dict[str, Any]]


def network_configurations(fields: Mapping[str, Any], path: str = "") -> list[NetworkConfiguration]:
    """Return the NetworkConfigurations of a resource at a path, from its NetworkConfiguration.

    The double has one address, which it shows for every requested network.
    """
    enabled = {
        "public": fields.get("EnablePublicNetwork", True),
        "private": fields.get("EnablePrivateNetwork", False),
    }
    address = base_url() + path
    return [_network(kind, address, fields) for kind, on in enabled.items() if on]


def _network(kind: str, address: str, fields: Mapping[str, Any]) -> NetworkConfiguration:
    network: NetworkConfiguration = {"NetworkType": kind, "Endpoint": address}
    if "VpcConfiguration" in fields:
        network["VpcConfiguration"] = fields["VpcConfiguration"]
    return network
