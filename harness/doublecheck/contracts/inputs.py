"""The inputs of checks: texts, payloads, ids, headers, files, code and histories.

The inputs that are always tried each target a class of mistakes: white space lost at the ends,
newlines within, non-ASCII characters, text cut at a buffer limit, and fields that are null, nested
or unknown.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import string
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.strategies import SearchStrategy

from doublecheck.errors import NoAnswerError

if TYPE_CHECKING:
    from doublecheck.target.plan import Plan

ON_A_DOUBLE, ON_A_LIVE_PLATFORM = 6, 2
SHRINK_CALLS, SHRINK_WITHIN_S = 60, 10.0  # more would send too many requests to a failing platform
SHOWN_CHARS = 300
FIXTURE = "examples"

SEED = 0

Values = Mapping[str, Any]
Body = Callable[..., None]
# pytest.fail() and a failed pytest.raises() do not raise an Exception
FAILURES = (Exception, pytest.fail.Exception)


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


def for_each(cost: int = 1, **inputs: Input) -> Callable[[Body], Body]:
    """Make a check run for each example of its inputs.

    ``cost`` is the cost of an example in requests. The higher it is, the fewer examples are tried,
    but always at least one.
    """

    def decorate(check: Body) -> Body:
        @functools.wraps(check)
        def run(**fixtures: Any) -> None:
            examples: Examples = fixtures[FIXTURE] if takes_examples else fixtures.pop(FIXTURE)
            examples.run(functools.partial(check, **fixtures), inputs, cost)

        signature = inspect.signature(check)
        takes_examples = FIXTURE in signature.parameters
        named = [it for it in signature.parameters.values() if it.name not in inputs]
        if not takes_examples:
            named.append(inspect.Parameter(FIXTURE, inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
        return run

    return decorate


@dataclass
class Examples:
    """How many examples a check tries, and from which seed.

    ``failing`` describes the smallest example for which the check failed. ``forget`` is called
    before that example is tried again, so that its exchanges are the last.
    """

    count: int
    seed: int
    forget: Callable[[], None]
    failing: str = ""

    def run(self, check: Body, inputs: Mapping[str, Input], cost: int = 1) -> None:
        """Run a check for each example. Raise the error of the smallest example that fails."""
        count = max(1, self.count // cost)
        first = list(itertools.islice(_always(inputs), count))
        failures: list[tuple[Values, BaseException]] = []

        def attempt(**values: Any) -> None:
            try:
                check(**values)
            except FAILURES as error:
                failures.append((values, error))
                self.failing = _described(values)
                raise

        try:
            for values in first:
                attempt(**values)
            if count > len(first):
                self._generate(attempt, inputs, count - len(first), Phase.generate)
        except NoAnswerError:
            raise  # each further try would take as long
        except FAILURES:
            if not failures:
                raise  # raised by Hypothesis, not by the check
            with contextlib.suppress(*FAILURES):  # they are in the list
                shrinking = (Phase.generate, Phase.shrink)
                self._generate(_bounded(attempt), inputs, SHRINK_CALLS, *shrinking)
            values, error = min(failures, key=lambda failure: len(repr(failure[0])))
            self.failing = f"{_described(values)}, with the seed {self.seed}"
            self.forget()
            check(**values)
            raise error from None  # it did not fail again; the platform may behave differently each time

    def _generate(
        self, check: Body, inputs: Mapping[str, Input], count: int, *phases: Phase
    ) -> None:
        """Run a check for random examples, until one fails."""
        strategies = {name: field.strategy for name, field in inputs.items()}
        limits = settings(
            max_examples=max(count, 1),
            phases=phases,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        )
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            # Hypothesis warns if other threads use the random module while it draws examples, and
            # if the garbage collector's objects are frozen. Neither affects a check.
            warnings.simplefilter("ignore", HypothesisWarning)
            # It would also draw constants from the imported code. That is slow, because it parses
            # all of it, and not reproducible from a seed.
            patch.setattr(HypothesisProvider, "_maybe_draw_constant", _no_constant, raising=False)
            hypothesis.seed(self.seed)(limits(given(**strategies)(check)))()


def _bounded(check: Body) -> Body:
    """Return a check that stops running after a number of calls, or some time."""
    until, calls = time.monotonic() + SHRINK_WITHIN_S, itertools.count()

    def run(**values: Any) -> None:
        if next(calls) < SHRINK_CALLS and time.monotonic() < until:
            check(**values)

    return run


def _no_constant(*_: Any, **__: Any) -> None:
    return None


def chosen(plan: Plan) -> tuple[int, int]:
    """Return how many examples a platform's checks try, and from which seed."""
    usual = ON_A_DOUBLE if plan.kind == "double" else ON_A_LIVE_PLATFORM
    return plan.value("examples") or usual, plan.value("seed") or SEED


def _always(inputs: Mapping[str, Input]) -> Iterator[Values]:
    """Yield the examples that are always tried, combined across the inputs in order."""
    most = max(len(field.always) for field in inputs.values())
    if not all(field.always for field in inputs.values()):
        return
    for number in range(most):
        yield {name: field.always[number % len(field.always)] for name, field in inputs.items()}


def _described(values: Values) -> str:
    return ", ".join(f"{name}={_cut(repr(value))}" for name, value in values.items())


def _cut(text: str) -> str:
    omitted = len(text) - SHOWN_CHARS
    if omitted <= 0:
        return text
    half = SHOWN_CHARS // 2
    return f"{text[:half]} ... {omitted} characters omitted ... {text[-half:]}"


# str.splitlines() treats U+2028 and U+0085 as line ends; JSON and SSE do not.
FRAGMENTS = (
    "a",
    "0",
    " ",
    "\t",
    "\n",
    "ü",
    "e\N{COMBINING ACUTE ACCENT}",
    "🦉",
    "\N{LINE SEPARATOR}",
    "\N{NEXT LINE}",
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
)
LONG = 70_000  # characters: above 64 KiB, the usual size of buffers and pipes
RICH = " \n\t\"ü\\n é e\N{COMBINING ACUTE ACCENT} 日本語 🦉\N{LINE SEPARATOR}{'a':  [ 1]}\n\ndata: x\n'<b>&amp;</b> %20+ null\n \t"
_WORDS = string.ascii_letters + string.digits


def texts(*, empty: bool = True, carriage_returns: bool = False, long: int = LONG) -> Input:
    """Texts of any characters, except carriage returns where a protocol changes them.

    ``long`` is the length of the longest text, in characters.
    """
    fragments = (*FRAGMENTS, "\r\n") if carriage_returns else FRAGMENTS
    strategy = st.lists(st.sampled_from(fragments), min_size=0 if empty else 1, max_size=8)
    rich = RICH.replace("\n", "\r\n", 1) if carriage_returns else RICH
    filled = (rich + "0123456789" * (long // 10))[: long - len(rich)] + rich
    return Input(strategy.map("".join), (filled, " " if not empty else "", "\n", "ü"))


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
    """JSON values: null, booleans, numbers, texts, arrays and objects, also nested."""
    single = st.sampled_from([None, True, False, 0, 1, -7, 2**53 - 1, 0.5, -1.5e-7, "", "0", "ü"])
    strategy = st.recursive(
        single,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_NAMES), inner, max_size=3)
        ),
        max_leaves=6,
    )
    return Input(strategy, (_NESTED, None, [], {}, [[], {}], 2**53 - 1, False, 0))


def payloads() -> Input:
    """JSON objects with any fields, except ``do``, which the reference application uses."""
    rich = {
        "prompt": texts(carriage_returns=True).always[0],
        "_private": 0,
        "false": False,
        " a  b ": {" a  b ": {"\n": " a  b "}},
        "none": None,
        "empty": {},
        "list": [1, [2, [None]], {"a": False}],
        "nested": _NESTED,
        "ü 日本語": "ü",
        "": "",
        "headers": {"user_id": "in the body"},
        "payload": 0.5,
        "user_id": "in the body",
        "long": "0123456789" * (LONG // 10),
        "Prompt": 2**53 - 1,
    }
    some = st.dictionaries(st.sampled_from(_NAMES), values().strategy, max_size=5)
    return Input(some, (rich, {}, {"prompt": ""}, {"prompt": None}, {"prompt": " x\n"}))


def files(longest: int = LONG) -> Input:
    """Contents of files: every byte, empty files, line ends of all kinds, large files."""
    parts = st.sampled_from([b"\0", b"\r\n", b"\n", b"\xff\xfe", "ü".encode(), bytes(range(256))])
    contents = st.lists(parts, max_size=6).map(b"".join)
    every = bytes(range(256))
    return Input(contents, (every * (longest // 256) + b"\r\n\0", b"", b"\n", b"no newline"))


def histories(most: int = 4) -> Input:
    """The messages of a user in one session, one or several. None is JSON."""
    messages = texts(empty=False, long=5000).strategy.map("said: {}".format)
    rich = ["said: first", f"said: {RICH * 5}", "said: first", '42 {"a":  [ 1]}']
    return Input(st.lists(messages, min_size=1, max_size=most), (rich, ["said: alone"]))


def unusual_ids() -> Input:
    """Ids with characters that some platforms refuse. A platform must not change them."""
    parts = (
        "a",
        "@",
        ":",
        "+",
        " ",
        "ü",
        "e\N{COMBINING ACUTE ACCENT}",
        "%41",
    )
    some = st.lists(st.sampled_from(parts), min_size=1, max_size=8).map("".join)
    rich = "Änne.é+日本@example.com: 1 %41"
    return Input(some.map("i{}i".format), (rich, "0" * 3, "1e3", "a" * 200))


_NAMES = ("prompt", "a", "A", "ü", "", "with space", "nested", "headers", "id", "null", "x-y_z.0")
_NESTED: Any = {"a": {"b": [{"c": [None, "ü", {"d": " e "}]}, []]}, "n": -1.5e-7, "t": True}
