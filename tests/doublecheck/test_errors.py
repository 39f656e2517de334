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
def test_an_exception_comes_out_of_another_process_as_it_was(error: BaseException) -> None:
    """Message and attributes; a pool of processes would break where it did not."""
    copied = pickle.loads(pickle.dumps(error))

    assert (type(error), str(error), vars(error)) == (type(copied), str(copied), vars(copied))
