"""Request bodies as pydantic models, and the fields that several actions share."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from agentdouble.control_plane.public_errors import invalid, missing
from agentdouble.core import ledger
from agentdouble.core.suggestions import nearest
from agentdouble.journal.entries import note_unread
from agentdouble.processes.workspace import RESERVED
from agentdouble.sandbox.workbench.wire import HOME

_Model = TypeVar("_Model", bound=BaseModel)

MAX_TTL_S = 86_400
_MINUTE_S = 60
_PUBLISHED_CHARS = re.compile(r"[A-Za-z0-9_-]{1,200}")
_ENVS_LIMIT = 64 * 1024

Unit = Literal["second", "minute"]


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
            raise missing(field, _hint(model, document, str(first["loc"][-1]))) from None
        raise invalid(field, first["msg"]) from None
    note_unread(_unread(body, document, prefix))
    return body


def _hint(model: type[BaseModel], document: Mapping[str, Any], field: str) -> str:
    """Return a sentence about a field of the document that may have been meant for ``field``."""
    names = {it.alias or name for name, it in model.model_fields.items()}
    near = nearest(field, [name for name in document if name not in names])
    return f" The field {near[0]:.100} was not used. Did you mean {field}?" if near else ""


def _unread(value: Any, document: Any, path: str) -> Iterator[str]:
    """Yield the paths in ``document`` that were ignored when ``value`` was read from it."""
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


def _is_too_short(ttl_s: int) -> bool:
    """Return whether a lifetime is below the smallest one (U-TOOL-TTL-LIMITS)."""
    return ttl_s < _MINUTE_S and ledger.choose("U-TOOL-TTL-LIMITS") == "from-60"


_TOO_SHORT = f"it must be at least {_MINUTE_S} seconds"


def _check_ttl_s(ttl_s: int) -> int:
    if _is_too_short(ttl_s):
        raise PydanticCustomError("ttl", _TOO_SHORT)
    return ttl_s


Seconds = Annotated[
    int,
    Field(ge=1, le=MAX_TTL_S),
    BeforeValidator(_numeric_string),
    AfterValidator(_check_ttl_s),
]
Validity = Annotated[int, Field(ge=1), BeforeValidator(_numeric_string)]


def ttl_in_seconds(ttl: int, unit: Unit | None) -> int:
    """Return a lifetime in seconds (U-TOOL-TTL-UNIT); raise ActionError if it is out of limits."""
    seconds = ttl * 60 if (unit or ledger.choose("U-TOOL-TTL-UNIT")) == "minute" else ttl
    if seconds > MAX_TTL_S:
        raise invalid("Ttl", f"it must not exceed {MAX_TTL_S} seconds")
    if _is_too_short(seconds):
        raise invalid("Ttl", _TOO_SHORT)
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
        # the platform's command line sends HOME with the value that every sandbox uses
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
