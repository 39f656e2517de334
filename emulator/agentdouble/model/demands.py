"""What a request demands of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble.errors import ModelError

UNFIT = "script_does_not_fit"  # the code of the errors for such an answer


@dataclass(frozen=True)
class OutputFormat:
    """The format of a text: JSON that follows ``schema``, or with None any object of JSON.

    ``field`` is the request's field that demands it. If ``is_plain``, the text is a string itself,
    without quotes. Raises ModelError for what is no schema.
    """

    field: str
    schema: Mapping[str, Any] | bool | None = None
    is_plain: bool = False

    def __post_init__(self) -> None:
        import jsonschema  # slow: 0.1 s

        if self.schema is not None:
            try:
                jsonschema.validators.validator_for(
                    self.schema, jsonschema.Draft202012Validator
                ).check_schema(self.schema)
            except (jsonschema.SchemaError, RecursionError) as error:
                reason = getattr(error, "message", str(error))
                raise ModelError(
                    f"{self.field} has no valid JSON schema: {reason:.200}.", param=self.field
                ) from None

    def check(self, text: str) -> None:
        """Raise ModelError for a text of a script that does not have the format."""
        value: Any = text
        if not self.is_plain:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise self._wrong(text, f"it is not JSON: {error}") from None
        if self.schema is None:
            if not isinstance(value, dict):
                raise self._wrong(text, "it is not an object")
            return
        reason = _mismatch(self.schema, value)
        if reason is not None:
            raise self._wrong(text, reason)

    def _wrong(self, text: str, reason: str) -> ModelError:
        return ModelError(
            f"The script says {text!r:.100}, but the request's {self.field} demands another form: "
            f"{reason}. Script a text that the schema allows.",
            code=UNFIT,
        )


def _mismatch(schema: Mapping[str, Any] | bool, value: Any) -> str | None:
    """Return where a value breaks a schema, or None."""
    import jsonschema  # slow: 0.1 s
    from referencing import Registry  # comes with it
    from referencing.exceptions import Unresolvable

    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:  # a registry of its own never fetches what a reference names
        errors = validator(schema, registry=Registry()).iter_errors(value)
        error = jsonschema.exceptions.best_match(errors)
    except (Unresolvable, RecursionError) as failure:
        return f"the schema has a reference that leads nowhere ({failure!s:.100})"
    return None if error is None else f"{error.json_path}: {error.message:.200}"


@dataclass(frozen=True)
class Demands:
    """What a request demands of its answer.

    ``choice`` is the field that limits the calls, as the request has it. ``allowed`` are the tools
    that may be called; None allows all. ``limit`` is a number of words, and ``logprobs`` the number
    of likely words to report for each word; None reports nothing. If ``cuts_calls``, a call that is
    over the limit has a part of its arguments; else it is left out.
    """

    choice: str = ""
    allowed: frozenset[str] | None = None
    must_call: bool = False
    single_call: bool = False
    output: OutputFormat | None = None
    stop: tuple[str, ...] = ()
    limit: int | None = None
    logprobs: int | None = None
    cuts_calls: bool = True
