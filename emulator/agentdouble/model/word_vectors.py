"""Vectors of texts, in which texts that share words are near: a bag of words, hashed.

Each word is spread over some places of the vector, by a hash of its letters, so the same text has
the same vector on every machine. Long words count more, because short ones such as "the" say little. A
text of Chinese or Japanese, which has no spaces, counts by its characters.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

_CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # of scripts without spaces
_WORD = re.compile(rf"[{_CHARACTERS}]|[^\W_{_CHARACTERS}]+")
_PLACES = 8  # of a word; two words that share one still differ
_BYTES = 4  # of the hash, for each place
_HEAVIEST = 8  # letters, and the weight of a character, which is a word in short
_OF_CHARACTER = 4


def words(text: str) -> list[str]:
    """Return the words of a text, in small letters; a text without any is a word itself."""
    normal = unicodedata.normalize("NFKC", text).casefold()
    return _WORD.findall(normal) or [normal]


def vector(listed: Iterable[str], size: int) -> array[float]:
    """Return the vector of some words: numbers of 32 bits, whose squares have the sum 1."""
    sums: dict[int, float] = {}
    for word, count in Counter(listed).items():
        weight = count * (_OF_CHARACTER if _is_character(word) else min(len(word), _HEAVIEST))
        for place, sign in _places(word):
            index = place % size
            sums[index] = sums.get(index, 0.0) + sign * weight
    length = sum(value * value for value in sums.values()) ** 0.5
    numbers = array("f", bytes(4 * size))
    if not length:  # places that cancel each other out, in a very short vector
        numbers[0] = 1.0
        return numbers
    for index, value in sums.items():
        numbers[index] = value / length
    return numbers


def _is_character(word: str) -> bool:
    return len(word) == 1 and _WORD.match(word) is not None and not word.isascii()


@lru_cache(maxsize=16_384)
def _places(word: str) -> tuple[tuple[int, int], ...]:
    """Return the places of a word, each with its sign."""
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=_PLACES * _BYTES).digest()
    parts = [int.from_bytes(digest[i : i + _BYTES], "big") for i in range(0, len(digest), _BYTES)]
    return tuple((part >> 1, 1 if part & 1 else -1) for part in parts)
