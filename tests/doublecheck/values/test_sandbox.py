from __future__ import annotations

import base64

import pytest

from doublecheck.results import CodeError, CodeResult, Output, StreamEvent

PNG = base64.b64encode(b"\x89PNG").decode()


def result(*outputs: Output, status: str = "ok") -> CodeResult:
    return CodeResult(status == "ok", status, "it ran", outputs, 3, "s-1", "code")


def test_result_properties() -> None:
    """Streams are joined, the text is that of the last value and images are bytes."""
    html = result(
        Output("stream", name="stdout", text="a\n"),
        Output("display_data", data={"text/plain": "<Figure>", "image/png": PNG}),
        Output("stream", name="stderr", text="careful\n"),
        Output("stream", name="stdout", text="b\n"),
        Output("execute_result", data={"text/plain": "42"}),
    )

    assert ("a\nb\n", "careful\n") == (html.stdout, html.stderr)
    assert ("42", (b"\x89PNG",), None) == (html.text, html.images, html.error)


def test_a_failure_has_its_error() -> None:
    failed = result(
        Output("error", ename="ValueError", evalue="no", traceback=("one", "two")), status="error"
    )

    assert CodeError("ValueError", "no", "one\ntwo") == failed.error
    assert "<CodeResult error [3] error='ValueError: no'>" == repr(failed)


def test_a_repr_is_short() -> None:
    """Long output is cut, and empty fields are omitted."""
    html = result(Output("stream", name="stdout", text="x" * 1000))

    assert f"<CodeResult ok [3] stdout='{'x' * 57}...'>" == repr(html)
    assert "<CodeResult ok [3]>" == repr(result())


def test_invalid_images_are_left_out() -> None:
    broken = [Output("display_data", data={"image/png": raw}) for raw in ("a", "é", "no image!")]
    drawn = Output("display_data", data={"image/png": "é", "image/svg+xml": "<svg/>"})

    assert (b"<svg/>",) == result(*broken, drawn).images
    assert "<CodeResult ok [3]>" == repr(result(*broken))


def test_images_may_have_line_breaks() -> None:
    """Encoders and the notebook format produce them."""
    lines = [f"{PNG[:4]}\n", f"{PNG[4:]}\n"]
    html = result(
        *(Output("display_data", data={"image/png": image}) for image in (lines, "".join(lines)))
    )

    assert (b"\x89PNG",) * 2 == html.images


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{"error": "it broke"}', "it broke"),
        ('{"error": {"message": "no string"}}', None),
        ("[1]", None),
        ("plain text", None),
    ],
)
def test_an_event_with_an_error_is_a_failure(data: str, expected: str | None) -> None:
    """It is a JSON object with a string ``error``."""
    assert expected == StreamEvent(data).error
