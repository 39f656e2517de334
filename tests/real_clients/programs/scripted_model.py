"""What every agent of the scripted model has: its tool, its documents, and its questions.

The double's script calls ``add`` for the question of the tool agent and says its result. For the
retrieval agent it has an answer only if the right document is in the prompt.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

SUM = "What is 2 + 3?"
QUESTION = "What is the capital of France?"
DOCUMENTS = [
    "The cat sat on the mat and purred.",
    "Paris is the capital of France.",
    "Invoices are due within thirty days.",
]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def use(facts: dict[str, Any]) -> None:
    """Point the SDKs of this process at the double's model."""
    os.environ.update(facts["model"])


def prompt(document: str) -> str:
    """Return the prompt of the retrieval agent with the document that it found."""
    return f"Answer from this: {document}\n{QUESTION}"


def nearest(question: Sequence[float], documents: Sequence[Sequence[float]]) -> str:
    """Return the document whose vector is nearest to that of the question."""
    products = [sum(a * b for a, b in zip(question, one, strict=True)) for one in documents]
    return DOCUMENTS[products.index(max(products))]
