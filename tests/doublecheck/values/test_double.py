"""Several values in one: tuples that show themselves."""

from __future__ import annotations

import copy
import datetime as dt
import pickle

from doublecheck.results import Session, Sessions

NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.timezone.utc)


def session(name: str, left_s: float) -> Session:
    deadline = NOON + dt.timedelta(minutes=30)
    return Session(f"s-{name}", name, "t-1", NOON, deadline, left_s, 1, (1,))


TWO = (session("a", 1799.9), session("<b>", 61))


def test_they_are_tuples() -> None:
    """What worked with a tuple does with them."""
    sessions = Sessions(TWO)

    assert TWO == sessions == copy.deepcopy(sessions)
    assert hash(TWO) == hash(sessions)
    assert TWO[0] is sessions[0]


def test_a_part_and_a_copy_show_themselves_too() -> None:
    """Their type is kept."""
    sessions = Sessions(TWO)

    for copied in (sessions[:1], copy.copy(sessions), pickle.loads(pickle.dumps(sessions))):
        assert Sessions is type(copied)
    assert "<1 session: <Session a 29:59 left, 1 execution>>" == repr(sessions[:1])
    assert "<0 sessions>" == repr(sessions[2:])


def test_a_long_one_names_the_first() -> None:
    """A repr is a line."""
    assert repr(Sessions(TWO * 3)).endswith(
        "01:01 left, 1 execution>, <Session a 29:59 left, 1 execution>, ...>"
    )


def test_sessions_show_what_is_left_of_their_lives() -> None:
    """The shortest first."""
    html = Sessions(TWO)._repr_mimebundle_()["text/html"]

    assert html.index("&lt;b&gt;") < html.index("s-a")
    assert ("01:01", "29:59") == (
        html[html.index("01:01") :][:5],
        html[html.index("29:59") :][:5],
    )
