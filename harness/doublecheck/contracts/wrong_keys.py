"""What is not a given API key: nothing, another key, and what nearly is that key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

NOBODYS = "doublecheck-nobody-has-this-key"
NO_KEY = "no key"


def headers(key: str) -> Mapping[str, Mapping[str, str]]:
    """Return the headers with what is not the key, by what is wrong.

    They have no right key in another place or by another scheme: how a gateway is told a key is
    open (U-GATEWAY-AUTH).
    """
    values = dict(_values(key))
    return {NO_KEY: {}, **{what: {"Authorization": value} for what, value in values.items()}}


def _values(key: str) -> Iterator[tuple[str, str]]:
    for what, wrong in _wrong(key):
        if wrong != key:
            yield what, f"Bearer {wrong}"
    yield "an empty header", ""
    yield "the scheme alone", "Bearer"
    yield "another key without a scheme", NOBODYS
    yield "another key with another scheme", f"Basic {NOBODYS}"


def _wrong(key: str) -> Iterator[tuple[str, str]]:
    last = "a" if key[-1] != "a" else "b"
    half = len(key) // 2
    yield "the key without its end", key[:-1]
    yield "the key with more behind it", f"{key}0"
    yield "another key", NOBODYS
    yield "the key in the other case", key.swapcase()
    yield "the key with another end", f"{key[:-1]}{last}"
    yield "the key with another begin", f"{last}{key[1:]}" if key[0] != last else f"0{key[1:]}"
    yield "the key without its begin", key[1:]
    yield "the key with more before it", f"0{key}"
    yield "half of the key", key[:half]
    yield "the key with another middle", f"{key[:half]}{last * 2}{key[half + 2 :]}"
    yield "the key twice", f"{key}{key}"
