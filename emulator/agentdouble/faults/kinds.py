"""The kinds of faults: the effect of each on a call, and its fields."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

LONGEST_S = 60.0
_STATUSES = [400, 401, 403, 404, 409, 429, 500, 503]  # the statuses that a form suggests
_CODES_OF_ACTIONS = {429: "RequestLimitExceeded"}  # others are the phrase of HTTP
_LARGEST_BODY = 1024 * 1024  # characters

Header = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
HeaderValue = Annotated[str, Field(pattern=r"^[ -~]*$")]
Body = Annotated[str, Field(max_length=_LARGEST_BODY)]


class Fault(BaseModel):
    """A fault that happens to the ``nth`` matching call since it was armed, then each ``every``-th.

    ``times`` is the total number of calls to which it happens, or "all". The default is 1, but
    "all" if ``every`` is given.
    """

    # built when the first fault is parsed, because most doubles start without one
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    kind: str
    operation: str = Field(max_length=500)
    nth: int = Field(1, ge=1, title="First call", description="Counted from now.")
    every: int = Field(1, ge=1, title="Then every", description="1: each call, 2: every other.")
    times: Annotated[int, Field(ge=1)] | Literal["all"] = Field(1, title="How often")

    only: ClassVar[str | None] = None  # the operations that the fault is for, None for all

    @model_validator(mode="before")
    @classmethod
    def _every_goes_on(cls, fields: Any) -> Any:
        return {"times": "all", **fields} if "every" in fields else fields

    def is_for(self, call: int) -> bool:
        """Return whether the fault may happen to the call of this number, counted from 1."""
        return call >= self.nth and (call - self.nth) % self.every == 0

    def described(self) -> str:
        """Return a description in one line: kind, operation, call, fields."""
        dumped = self.model_dump(exclude_defaults=True, exclude={"kind", "operation"})
        fields = {name: _short(value) for name, value in {"nth": self.nth, **dumped}.items()}
        text = ", ".join(f"{name}={value}" for name, value in fields.items())
        return f"{self.kind} {self.operation} ({text})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


class Fail(Fault):
    """The call is refused. Nothing is executed, or with ``after_execution`` everything is.

    Without a ``body`` the answer is an error in the format of the called surface, with ``code``
    and ``message``.
    """

    kind: Literal["fail"] = "fail"
    status: int = Field(500, ge=200, le=599, title="HTTP status", examples=_STATUSES)
    code: str = Field("", max_length=200, title="Error code", examples=["Throttling"])
    message: str = Field("", max_length=10_000, title="Error message")
    retry_after_s: int | None = Field(None, ge=0, title="Retry-After, in seconds")
    after_execution: bool = Field(False, title="After the execution")
    body: Body | None = Field(None, title="Body", description="Instead of the error.")
    content_type: HeaderValue = Field(
        "application/json",
        title="Type of the body",
        examples=["application/json", "text/html", "text/plain"],
        json_schema_extra={"format": "media-type"},
    )
    headers: dict[Header, HeaderValue] = Field(
        default_factory=dict, title="More headers", examples=[{"X-Reason": "quota"}]
    )

    @model_validator(mode="after")
    def _is_an_answer(self) -> Fail:
        if self.status < 400 and self.body is None:
            raise ValueError("a status below 400 needs a body")
        return self

    def error(self, *, is_action: bool) -> tuple[str, str]:
        """Return the code and the message of the error, of an action of the control plane or not."""
        code = self.code or (_CODES_OF_ACTIONS.get(self.status) if is_action else None)
        code = code or _phrase(self.status).replace(" ", "").replace("-", "")
        return code, self.message or "A fault that was armed for this call."

    def extra_headers(self) -> dict[str, str]:
        """Return the headers that the answer has in addition to its own."""
        headers = dict(self.headers)
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(self.retry_after_s)
        return headers


class Gateway(Fault):
    """A gateway answers with an HTML page, and nothing is executed."""

    kind: Literal["gateway"] = "gateway"
    status: Literal[502, 503, 504] = 502

    def page(self) -> str:
        """Return the page, in HTML."""
        title = f"{self.status} {_phrase(self.status)}"
        head = f"<html>\r\n<head><title>{title}</title></head>"
        return f"{head}\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n</body>\r\n</html>\r\n"


class Delay(Fault):
    """The call waits for ``seconds``, or until it is released, at most 60 s.

    It waits before it is executed, or before its response if ``after_execution`` is true, or before
    each piece of the response's body if ``each_piece`` is true: a model with slow tokens.
    """

    # Real time, because clients wait in real time. A test that needs to be faster holds a call and
    # releases it.

    kind: Literal["delay"] = "delay"
    seconds: float | None = Field(
        None, gt=0, le=LONGEST_S, title="Seconds", description="Without: until it is released."
    )
    after_execution: bool = Field(False, title="After the execution")
    each_piece: bool = Field(False, title="Before each piece of the response")


class Cut(Fault):
    """The connection closes during the answer: after some events of its stream, or bytes."""

    kind: Literal["cut"] = "cut"
    after: int = Field(0, ge=0, title="After events")
    after_bytes: int | None = Field(None, ge=0, title="After bytes")

    @model_validator(mode="after")
    def _is_one_place(self) -> Cut:
        if self.after and self.after_bytes is not None:
            raise ValueError("it is cut after events or after_bytes, not both")
        return self


class LoseAnswer(Fault):
    """The call is executed, and the connection closes before any part of the answer."""

    kind: Literal["lose_answer"] = "lose_answer"


class Reset(Fault):
    """The connection is reset, and nothing is executed."""

    kind: Literal["reset"] = "reset"


class WrongJson(Fault):
    """The code runs, but Result.Result is ``text``, or does not have the fields ``without``."""

    kind: Literal["wrong_json"] = "wrong_json"
    text: Body | None = Field(None, title="Text instead of JSON")
    without: tuple[str, ...] = Field((), strict=False, title="Fields that are missing")

    only: ClassVar[str | None] = "InvokeTool"

    @model_validator(mode="after")
    def _is_one_wrong(self) -> WrongJson:
        if self.text is not None and self.without:
            raise ValueError("it has another text or is without fields, not both")
        return self


class DuringCode(Fault):
    """The fault happens when the code starts to run, or after ``after`` messages of its output.

    Output that is printed within a fifth of a second is one message.
    """

    after: int = Field(0, ge=0, title="After messages of output")

    only: ClassVar[str | None] = "code"


class KillKernel(DuringCode):
    """The kernel is killed while it runs the code of the call."""

    kind: Literal["kill_kernel"] = "kill_kernel"


class ExpireInstance(DuringCode):
    """The session's instance reaches its deadline while it runs the code (U-TTL-DURING)."""

    kind: Literal["expire_instance"] = "expire_instance"


class FailStart(Fault):
    """The session that the call creates does not start: it is Creating, then Failed.

    The call itself succeeds. Nothing happens if the session exists already.
    """

    kind: Literal["fail_start"] = "fail_start"

    after: ClassVar[int] = 0
    only: ClassVar[str | None] = "CreateSession"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
