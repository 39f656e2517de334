from __future__ import annotations

from doublecheck import Secret


def test_a_secret_is_never_printed() -> None:
    """Only reveal() returns it."""
    secret = Secret("abc")

    assert ["***", "Secret('***')", "***"] == [str(secret), repr(secret), f"{secret}"]
    assert "abc" == secret.reveal()


def test_secrets_are_compared_by_value() -> None:
    """Equal secrets have equal hashes."""
    assert {Secret("a"), Secret("b")} == {Secret("a"), Secret("b"), Secret("a")}
