"""The inputs of checks: texts, numbers, payloads, ids, headers, files, code and histories.

The inputs that are always tried each target a class of mistakes: white space lost at the ends,
newlines within, characters beyond ASCII or of no width, text cut at a buffer limit, numbers beyond
the precision of a float, and fields that are null, nested or unknown.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy


@dataclass(frozen=True)
class Input:
    """The possible values of an input.

    ``always`` holds the examples to try first, richest first.
    """

    strategy: SearchStrategy[Any]
    always: tuple[Any, ...] = ()

    def map(self, change: Callable[[Any], Any]) -> Input:
        """Return an input whose examples a function transforms."""
        return Input(self.strategy.map(change), tuple(change(example) for example in self.always))


# str.splitlines() treats U+2028 and U+0085 as line ends; JSON and SSE do not.
FRAGMENTS = (
    *("a", "0", " ", "\t", "\n", "\v", "\x7f", "ü", "e\N{COMBINING ACUTE ACCENT}", "🦉"),
    *("\N{LINE SEPARATOR}", "\N{NEXT LINE}", "\N{ZERO WIDTH SPACE}", "\N{ZERO WIDTH JOINER}"),
    *("\N{ZERO WIDTH NO-BREAK SPACE}", "\N{RIGHT-TO-LEFT OVERRIDE}", "\N{SOFT HYPHEN}"),
    *(
        '"',
        "'",
        "\\",
        "{}",
        "null",
        "<b>&amp;</b>",
        "%20+",
        "data: x",
        "$HOME `id` {{x}}",
        "x" * 33,
    ),
)
LARGE_FILE = 1_300_000  # bytes: above 1 MiB
LONG = 140_000  # characters: above 128 KiB; the usual sizes of buffers and pipes are smaller
# Characters that are often lost or changed: of no width, composed in two ways, and not printable.
INVISIBLE = (
    "\N{ZERO WIDTH NO-BREAK SPACE}a\N{ZERO WIDTH SPACE}b\N{ZERO WIDTH JOINER}c\N{SOFT HYPHEN}d"
    "\N{RIGHT-TO-LEFT OVERRIDE}e\N{LATIN SMALL LETTER E WITH ACUTE}\N{ANGSTROM SIGN}ﬁ①\v\f\x1c\x1e"
)
EDGES = (INVISIBLE, "0", " a ", "null", "%2F%41+", "a\n\nb\n", "1e3", "\N{NO-BREAK SPACE}x")
BUFFER = 65_536  # bytes, exactly
MANY = 60  # names and items: more than any usual page or limit
# Values that Python's == takes for each other, and that a platform may not.
MIXED: list[Any] = [True, 1, 1.0, False, 0, 0.0, -0.0, "1", "true", "null", None, "", [], {}]
# Ids that differ in case, in a sign, at their ends, or as numbers.
SIMILAR_IDS = ("a1", "A1", "a-1", "a_1", "a1-", "a11", "1", "01", "1.0", "1e0")
RICH = (
    " \n\t\"ü\\n é e\N{COMBINING ACUTE ACCENT} 日本語 🦉\N{LINE SEPARATOR}{'a':  [ 1]}\n\ndata: x\n'<b>&amp;</b> %20+ null "
    + INVISIBLE
    + "\n \t"
)
_WORDS = string.ascii_letters + string.digits


def texts(
    *, empty: bool = True, carriage_returns: bool = False, nul: bool = True, long: int = LONG
) -> Input:
    """Texts of any characters, except carriage returns and NUL where a protocol changes them.

    ``long`` is the length of the longest text, in characters.
    """
    fragments = (*FRAGMENTS, *(["\r\n"] if carriage_returns else ()), *(["\0"] if nul else ()))
    strategy = st.lists(st.sampled_from(fragments), min_size=0 if empty else 1, max_size=8)
    rich = RICH.replace("\n", "\r\n", 1) if carriage_returns else RICH
    rich += "\0 \b" if nul else ""
    filled = (rich + "0123456ü日🦉" * (long // 10))[: long - len(rich)] + rich
    whole = "0123456789abcdef" * (min(long, BUFFER) // 16)
    return Input(strategy.map("".join), (filled, whole, " " if not empty else "", "\n", "ü"))


def words(longest: int = 60) -> Input:
    """Words of letters and digits in both cases, safe in ids, names and headers."""
    letters = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=longest).map("".join)
    return Input(letters, (("aZ09" * longest)[:longest], "a", "007"))


def ids(longest: int = 64) -> Input:
    """Ids with a common prefix and different ends, with dots, hyphens, underscores and capitals."""
    letters = st.lists(st.sampled_from(_WORDS + "-_."), min_size=1, max_size=longest - 2)
    rich = ("Id-0_a.B" * longest)[: longest - 1]
    return Input(letters.map(lambda some: f"i{''.join(some)}i"), (f"{rich}i", "i1", "0-0"))


def values() -> Input:
    """JSON values: null, booleans, numbers, texts, arrays and objects, even nested."""
    numbers = (0, 1, 1.0, -0.0, -7, 2**53 + 1, -(2**63) - 1, 0.5, -1.5e-7, 1e300)
    single = st.sampled_from([None, True, False, *numbers, "", "0", "ü"])
    strategy = st.recursive(
        single,
        lambda it: st.lists(it, max_size=3) | st.dictionaries(_NAME, it, max_size=3),
        max_leaves=6,
    )
    return Input(strategy, (_NESTED, MIXED, None, [], {}, [[], {}], 2**53 - 1, False, 0, 1.0, -0.0))


def payloads() -> Input:
    """JSON objects with any fields, except ``do``, which the reference application uses."""
    rich = {
        "prompt": texts(carriage_returns=True).always[0],
        "_private": 0,
        "false": False,
        "none": None,
        "empty": {},
        "": "",
        "payload": 0.5,
        " a  b ": {" a  b ": {"\n": " a  b "}},
        "list": [1, [2, [None]], {"a": False}],
        "nested": _NESTED,
        "ü 日本語": "ü",
        "headers": {"user_id": "in the body"},
        "user_id": "in the body",
        "long": "0123456789" * (LONG // 10),
        "Prompt": 2**53 + 1,
        "numbers": [-(2**63) - 1, 2**64 + 1, 1e300, -0.1, 1e-7],
        "mixed": MIXED,
        "1": [[[[value]], value] for value in MIXED],
        "deep": _deep(MANY),
        "many items": [*range(2 * MANY), *range(MANY)],
        **{f"field {number}": number for number in range(2 * MANY)},
    }
    some = st.dictionaries(_NAME, values().strategy, max_size=5)
    return Input(some, (rich, {}, {"prompt": ""}, {"prompt": None}, {"prompt": " x\n"}))


def files(longest: int = LONG) -> Input:
    """Contents of files: every byte, empty files, line ends of all kinds, large files."""
    parts = st.sampled_from([b"\0", b"\r\n", b"\n", b"\xff\xfe", "ü".encode(), bytes(range(256))])
    contents = st.lists(parts, max_size=6).map(b"".join)
    every = bytes(range(256))
    large = every * (LARGE_FILE // 256) + b"\r\n\0"
    return Input(contents, (every * (longest // 256) + b"\0", large, b"", b"\n", b"no newline"))


HEADERS = (
    {
        "user_id": "Id-0_a.B" * 25,
        "session_id": "0-0_A.z" * 8,
        "request_id": "007",
        "x-custom": 'A, b; c="d" %20+&=/?:@ Z',
        "x-long": "aZ09" * 100,
        "x-json": '{"a": [1, null]}',
        "x-empty": "",
        "tenant": "Mixed Case, of two",
        "tenant_id": "007",
    },
    {
        "user_id": "many",
        "session_id": "many",
        "request_id": "many",
        **{f"x-custom-{number}": f"value {number}" for number in range(MANY)},
        "x-very-long": "0123456789abcdef" * 300,
        "x-spaces": "a  b   c",
        "x-quoted": '"quoted"',
        "x-quotes": "a \"b\" 'c'",
        "x-list": "a, b,c , d,, a",
        "x-parameters": "a=1; b=2;c=3",
    },
    {"user_id": "007", "session_id": "%2Fa%41+", "request_id": "Z-1_b.c"},
    {"user_id": "a%2541", "session_id": "A", "request_id": "1e3"},
)


def headers() -> Input:
    """Headers of invocations: the three named ones, and custom ones."""
    named = {name: ids().strategy for name in ("user_id", "session_id", "request_id")}
    custom = {name: words().strategy for name in ("x-custom", "tenant", "tenant_id")}
    return Input(st.fixed_dictionaries(named, optional=custom), HEADERS)


def many(form: str) -> list[str]:
    """Return ``MANY`` texts of a form, which takes their number."""
    return [form.format(number) for number in range(MANY)]


def histories() -> Input:
    """The messages of a user in one session, one or several. None is JSON."""
    messages = texts(empty=False, long=5000).strategy.map("said: {}".format)
    first = "said: first"
    rich = [first, f"said: {RICH * 5}", first, '42 {"a":  [ 1]}', *many("{}")]
    return Input(st.lists(messages, min_size=1, max_size=4), (rich, ["said: alone"]))


def unusual_ids() -> Input:
    """Ids with characters that some platforms refuse. A platform must not change them."""
    parts = ("a", "@", ":", "+", " ", "ü", "e\N{COMBINING ACUTE ACCENT}", "%41")
    some = st.lists(st.sampled_from(parts), min_size=1, max_size=8).map("".join)
    rich = "Änne.é+日本@example.com: 1 %41"
    composed = "\N{LATIN SMALL LETTER E WITH ACUTE}"
    forms = (composed, "e\N{COMBINING ACUTE ACCENT}")
    return Input(some.map("i{}i".format), (rich, *forms, "0" * 3, "1e3", "a" * 200, "a/b"))


def _deep(depth: int) -> Any:
    """Return a value inside this many lists and objects."""
    value: Any = 1.0
    for number in range(depth):
        value = [value] if number % 2 else {"in": value}
    return value


_NAME = st.sampled_from(
    ("prompt", "a", "A", "ü", "", "with space", "nested", "headers", "id", "null", "x-y_z.0")
)
_NESTED: Any = {"a": {"b": [{"c": [None, "ü", {"d": " e "}]}, []]}, "n": -1.5e-7, "t": True}
