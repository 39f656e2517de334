from __future__ import annotations

from agentdouble import Emulator
from tests.agentdouble.calling import act_on_session, body_of, call, error_of, http, result, text


def sessions(double: Emulator) -> list[dict[str, object]]:
    items: list[dict[str, object]] = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return items


def change(double: Emulator, session_id: str, action: str) -> dict[str, object]:
    """Pause or resume a session and return how the double lists it."""
    act_on_session(double, action, session_id)
    return next(session for session in sessions(double) if session["SessionId"] == session_id)


def advance(double: Emulator, seconds: int) -> None:
    http.post(f"{double.url}/_emulator/clock", json={"advance_s": seconds})


def test_a_paused_session_refuses_calls_and_keeps_state(double: Emulator) -> None:
    """Calls work again once it is resumed."""
    session_id = result(double, "x = 42")["SessionId"]

    paused = change(double, session_id, "PauseSession")
    refused = error_of(call(double, body_of(double, "x")))
    resumed = change(double, session_id, "ResumeSession")

    assert ("paused", "active") == (paused["state"], resumed["state"])
    assert (409, "InvalidResource.Paused") == (refused["status"], refused["Code"])
    assert "42\n" == text(double, "print(x)")


def test_validity_runs_while_paused(double: Emulator) -> None:
    """U-TTL-PAUSED: 30 minutes are 30 minutes."""
    session_id = result(double, "1")["SessionId"]
    change(double, session_id, "PauseSession")

    advance(double, 1800)

    assert [] == sessions(double)


def test_validity_stops_while_paused_if_configured() -> None:
    """U-TTL-PAUSED stops: the remaining time is unchanged."""
    with Emulator(unknowns={"U-TTL-PAUSED": "stops"}) as double:
        session_id = result(double, "1")["SessionId"]
        advance(double, 600)
        change(double, session_id, "PauseSession")
        advance(double, 3600)
        still_there = [s["SessionId"] for s in sessions(double)]
        remaining_s = change(double, session_id, "ResumeSession")["remaining_s"]
        advance(double, 1200)

        assert [session_id] == still_there
        assert isinstance(remaining_s, float)
        assert 600 < remaining_s <= 1200  # less the time that the calls took
        assert [] == sessions(double)
