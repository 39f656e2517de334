"""Embeddings: the same vector for a text each time, and near ones for texts that share words."""

from __future__ import annotations

import array
import base64
import itertools
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from agentdouble.model import word_vectors
from tests.agentdouble.model.clients import Model

pytestmark = pytest.mark.smoke

DOCUMENTS = (
    "Paris is the capital of France.",
    "The cat sat on the mat and purred.",
    "Invoices are due within thirty days.",
    "To reset your password, open the settings page.",
    "巴黎是法国的首都。",
    "本店周一至周五营业。",
)
QUESTIONS = (
    "What is the capital of France?",
    "Where did the cat sit?",
    "When are invoices due?",
    "How do I reset my password?",
    "法国的首都是哪里?",
    "周五营业吗?",
)


def nearness(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two unit vectors."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def embed(model: Model, value: Any, **fields: Any) -> list[Any]:
    """Return the vectors of an input in OpenAI's form."""
    response = model.openai.post(
        "/embeddings", json={"model": "text-embedding-3-small", "input": value, **fields}
    )
    assert 200 == response.status_code, response.text
    return [one["embedding"] for one in response.json()["data"]]


@pytest.mark.parametrize("size", [1536, 256])
def test_each_question_is_nearest_to_its_document(model: Model, size: int) -> None:
    documents = embed(model, list(DOCUMENTS), dimensions=size)
    questions = embed(model, list(QUESTIONS), dimensions=size)

    nearest = [
        max(range(len(documents)), key=lambda index: nearness(question, documents[index]))
        for question in questions
    ]

    assert list(range(len(DOCUMENTS))) == nearest
    assert all(math.isclose(1, nearness(v, v), abs_tol=1e-5) for v in (*documents, *questions))


@pytest.mark.parametrize("seed", range(20))
def test_texts_that_share_words_are_nearer(seed: int) -> None:
    """Half of the words is nearer than none, whatever the words are."""
    chance = random.Random(seed)
    words = {"".join(chance.choices("abcdefghij", k=chance.randint(3, 9))) for _ in range(16)}
    left, right = sorted(words)[::2], sorted(words)[1::2]
    half = [*left[: len(left) // 2 + 1], *right[: len(left) // 2]]
    vectors = [word_vectors.vector(words, 1536) for words in (left, half, right)]

    assert nearness(vectors[0], vectors[1]) > nearness(vectors[0], vectors[2])


def test_a_vector_is_the_same_each_time_whatever_its_form(model: Model) -> None:
    text = "One two THREE"
    floats = embed(model, text)
    again = embed(model, ["one, two; three!"], encoding_format="float")
    (encoded,) = embed(model, text, encoding_format="base64")

    numbers = array.array("f", base64.b64decode(encoded))
    assert floats == again
    assert floats[0] == numbers.tolist()
    assert 1536 == len(numbers)


def test_token_ids_are_words(model: Model) -> None:
    one, two = embed(model, [[1, 2, 3], [3, 2, 1]], dimensions=64)
    (alone,) = embed(model, [1, 2, 3], dimensions=64)

    assert one == two == alone
    assert embed(model, [9, 8, 7], dimensions=64)[0] != alone


def test_the_usage_counts_words(model: Model) -> None:
    body = {"model": "m", "input": ["one two", "three"]}
    answer = model.openai.post("/embeddings", json=body).json()

    assert {"prompt_tokens": 3, "total_tokens": 3} == answer["usage"]
    assert [0, 1] == [item["index"] for item in answer["data"]]


def test_gemini_embeds_one_and_many(model: Model) -> None:
    """Each method of Gemini's and Vertex AI's has the vector of OpenAI's form for the same size."""
    path, text = "/v1beta/models/gemini-embedding-001", "Paris is the capital of France."
    content = {"parts": [{"text": text}]}
    one = {"content": content, "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 64}
    many = {"requests": [{"model": "models/gemini-embedding-001", **one}] * 2}
    nested = {"content": content, "embedContentConfig": {"outputDimensionality": 64}}
    instances = {"instances": [{"content": text, "task_type": "RETRIEVAL_DOCUMENT"}]}
    vertex = "/v1beta1/projects/p/locations/l/publishers/google/models/text-embedding-005"

    single = model.gemini.post(f"{path}:embedContent", json=one).json()
    batch = model.gemini.post(f"{path}:batchEmbedContents", json=many).json()
    newer = model.gemini.post(f"{vertex}:embedContent", json=nested).json()
    older = model.gemini.post(
        f"{vertex}:predict", json={**instances, "parameters": {"outputDimensionality": 64}}
    ).json()
    default = model.gemini.post(f"{path}:embedContent", json={"content": content}).json()

    (expected,) = embed(model, text, dimensions=64)
    assert expected == single["embedding"]["values"] == newer["embedding"]["values"]
    assert [expected] * 2 == [item["values"] for item in batch["embeddings"]]
    assert expected == older["predictions"][0]["embeddings"]["values"]
    assert 6 == single["usageMetadata"]["promptTokenCount"]
    assert 3072 == len(default["embedding"]["values"])


def test_a_title_counts_too(model: Model) -> None:
    path = "/v1beta/models/m:embedContent"
    body = {"content": {"parts": [{"text": "It is large."}]}, "outputDimensionality": 256}
    plain, titled = (
        model.gemini.post(path, json={**body, **title}).json()["embedding"]["values"]
        for title in ({}, {"title": "Whales"})
    )
    (whale,) = embed(model, "whales", dimensions=256)

    assert nearness(whale, titled) > nearness(whale, plain)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"input": ""}, "input[0] must be a text"),
        ({"input": []}, "input must be a text, a list of texts"),
        ({"input": None}, "input must be"),
        ({"input": [[]]}, "input[0] must be"),
        ({"input": [{"text": "x"}]}, "input[0] must be"),
        ({"input": ["x"] * 2049}, "may have 2048 items"),
        ({"dimensions": 0}, "dimensions must be at least 1"),
        ({"dimensions": 9999}, "at most 4096"),
        ({"encoding_format": "hex"}, "must be float or base64"),
        ({"dims": 3}, "Unknown parameter: 'dims'"),
        ({"model": None}, "model must be a string"),
    ],
)
def test_malformed_requests_are_refused(model: Model, fields: dict[str, Any], text: str) -> None:
    refused = model.openai.post("/embeddings", json={"model": "m", "input": "x", **fields})

    assert 400 == refused.status_code
    assert text in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "body", "text"),
    [
        ("embedContent", {"content": {"parts": [{"inlineData": {}}]}}, "embeds only text"),
        ("embedContent", {"content": {"parts": []}}, "has no text"),
        ("embedContent", {"content": {"parts": [{"text": "x"}]}, "size": 3}, "Unknown name 'size'"),
        ("batchEmbedContents", {"requests": []}, "requests must have an item"),
        ("predict", {"instances": [{"text": "x"}]}, "Unknown name 'text'"),
    ],
)
def test_malformed_requests_of_gemini_are_refused(
    model: Model, method: str, body: dict[str, Any], text: str
) -> None:
    refused = model.gemini.post(f"/v1/models/m:{method}", json=body)

    assert (400, "INVALID_ARGUMENT") == (refused.status_code, refused.json()["error"]["status"])
    assert text in refused.json()["error"]["message"]


def test_only_served_models_embed(model: Model) -> None:
    model.admin.post("/model", json={"models": ["gpt-4o"]})

    openai = model.openai.post("/embeddings", json={"model": "m", "input": "x"})
    gemini = model.gemini.post(
        "/v1/models/m:embedContent", json={"content": {"parts": [{"text": "x"}]}}
    )

    assert (404, 404) == (openai.status_code, gemini.status_code)
    assert "model_not_found" == openai.json()["error"]["code"]


def test_vectors_differ_also_where_they_are_short() -> None:
    """Also at one dimension each is a unit vector."""
    for size, text in itertools.product((1, 2, 3, 7), ("a", "b c", "!", "你好", " ")):
        found = word_vectors.vector(word_vectors.words(text), size)
        assert math.isclose(1, nearness(found, found), abs_tol=1e-5)
