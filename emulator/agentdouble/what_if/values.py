"""A question, its answer, and its refusal."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from agentdouble.errors import AgentDoubleError
from agentdouble.what_if.differences import Difference


class Question(TypedDict):
    """What if this unknown had this answer: what would that request have been answered?"""

    entry: Annotated[int, Field(ge=1, description="The id of a journal entry.")]
    unknown: str
    answer: Annotated[str, Field(description="The name of an alternative that is built.")]


class Reply(TypedDict):
    """What a fresh double answered under an answer to the unknown."""

    answer: str
    status: Annotated[int | None, Field(description="null if the connection ended instead.")]
    body: str


class Found(TypedDict):
    """What two fresh doubles answered, and what differs by more than ids and times."""

    entry: int
    unknown: str
    in_force: Reply
    other: Reply
    differences: list[Difference]
    asked_before: Annotated[
        list[int], Field(description="Earlier entries, which were asked first, on each double.")
    ]
    notes: Annotated[list[str], Field(description="What to know of the comparison.")]


class WhatIfError(AgentDoubleError):
    """A question that no double could answer."""

    def __init__(self, message: str, kind: str, status: int) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
