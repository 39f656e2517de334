from __future__ import annotations

import pickle

import pytest

from doublecheck import errors


@pytest.mark.parametrize(
    "error",
    [
        errors.ArgumentError("No."),
        errors.ConfigurationError("No.", source="pyproject.toml", key="url"),
        errors.MissingExtraError("respx", install="agentdouble[mock]"),
        errors.RefusedError("No.", status=409, body="{}", code="Conflict"),
        errors.ResultError("It failed:", result=("it",), ename="E", evalue="no", traceback="t"),
        errors.UnseenRequestError("example.com", ["cloud.com"], "requests"),
        errors.InterruptedRunError("s1", double=True),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_can_be_pickled(error: BaseException) -> None:
    """Process pools rely on it."""
    copied = pickle.loads(pickle.dumps(error))

    assert (type(error), str(error), vars(error)) == (type(copied), str(copied), vars(copied))
