from __future__ import annotations

from doublecheck import Secret


def test_a_secret_shows_itself_to_nobody() -> None:
    """However it is printed, only reveal() tells it."""
    secret = Secret("abc")

    assert ["***", "Secret('***')", "***"] == [str(secret), repr(secret), f"{secret}"]
    assert "abc" == secret.reveal()


def test_secrets_are_compared_by_value() -> None:
    """Two secrets of the same string are equal and hash alike."""
    assert {Secret("a"), Secret("b")} == {Secret("a"), Secret("b"), Secret("a")}
