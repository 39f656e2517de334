"""Collections of values: tuples with a display."""

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


def test_collections_are_tuples() -> None:
    sessions = Sessions(TWO)

    assert TWO == sessions == copy.deepcopy(sessions)
    assert hash(TWO) == hash(sessions)
    assert TWO[0] is sessions[0]


def test_slices_and_copies_keep_their_type() -> None:
    sessions = Sessions(TWO)

    for copied in (sessions[:1], copy.copy(sessions), pickle.loads(pickle.dumps(sessions))):
        assert Sessions is type(copied)
    assert "<1 session: <Session a 29:59 left, 1 execution>>" == repr(sessions[:1])
    assert "<0 sessions>" == repr(sessions[2:])


def test_a_long_repr_shows_the_first_values() -> None:
    assert repr(Sessions(TWO * 3)).endswith(
        "01:01 left, 1 execution>, <Session a 29:59 left, 1 execution>, ...>"
    )


def test_sessions_show_their_remaining_time() -> None:
    """The shortest comes first."""
    html = Sessions(TWO)._repr_mimebundle_()["text/html"]

    assert html.index("&lt;b&gt;") < html.index("s-a")
    assert ("01:01", "29:59") == (
        html[html.index("01:01") :][:5],
        html[html.index("29:59") :][:5],
    )
