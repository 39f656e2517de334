"""What a message must have before an executor hears of it: content that the card promises to take.

The SDK leaves all three questions open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from a2a.types import AgentCard, Message
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
)

from agentdouble.apps.a2a import writable


def check(message: Message, card: AgentCard, extensions: Collection[str]) -> None:
    """Raise the A2AError with which a message must be refused.

    ``extensions`` are those that the caller has declared to support.
    """
    _check_extensions(card, extensions)
    _check_content(message)
    _check_media_types(message, card)


def _check_extensions(card: AgentCard, declared: Collection[str]) -> None:
    required = [one.uri for one in card.capabilities.extensions if one.required]
    missing = [uri for uri in required if uri not in declared]
    if missing:
        raise ExtensionSupportRequiredError(
            f"The agent requires {', '.join(missing)}: name what you support in A2A-Extensions."
        )


def _check_content(message: Message) -> None:
    for number, part in enumerate(message.parts):
        if part.WhichOneof("content") is None:
            field = f"message.parts[{number}]"
            problem = "A part has one of text, raw, url and data."
            raise InvalidParamsError(
                f"{field} is empty. {problem}", {"errors": [{"field": field, "message": problem}]}
            )
    try:
        writable.check(message)
    except ValueError as error:
        raise InvalidParamsError(str(error)) from None


def _check_media_types(message: Message, card: AgentCard) -> None:
    modes = {mode.lower() for mode in card.default_input_modes}
    modes.update(mode.lower() for skill in card.skills for mode in skill.input_modes)
    for part in message.parts:
        if modes and part.media_type and not _takes(modes, part.media_type):
            raise ContentTypeNotSupportedError(
                f"The agent takes {', '.join(sorted(modes))}, not {part.media_type!r}."
            )


def _takes(modes: Iterable[str], media_type: str) -> bool:
    """Return whether one of the modes is a media type, its range, or its kind ("text")."""
    essence = media_type.partition(";")[0].strip().lower()
    kind = essence.partition("/")[0]
    return any(mode in (essence, kind, f"{kind}/*", "*/*") for mode in modes)
