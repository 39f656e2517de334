"""Building blocks of HTML displays."""

from __future__ import annotations

from doublecheck.core import markup


def test_values_are_escaped() -> None:
    hostile = '"><script>x</script>'

    html = markup.box(
        markup.title(hostile, markup.badge(hostile), hostile),
        markup.table([hostile], [[hostile], [markup.code(hostile)]]),
        markup.folded(hostile, markup.pre(hostile), hostile),
        markup.quiet(hostile),
        markup.image(hostile, b"<"),
    )

    assert 11 == html.count("&lt;script&gt;")
    assert "<script" not in html


def test_long_text_is_truncated_with_a_note() -> None:
    """The note says how to get all of it."""
    expected = "xxx\n… 1,997 more characters; result.stdout has all of it"

    assert expected == markup.clipped("x" * 2000, 3, source="result.stdout")
    assert "xxx" == markup.clipped("xxx", 3)


def test_images_may_be_url_safe_base64() -> None:
    """Agents' events use it, kernels standard base64. Invalid base64 is dropped."""
    html = markup.image("image/png", b"\xfb\xff")

    assert html == markup.image_of("image/png", "-_8=") == markup.image_of("image/png", "+/8=")
    assert markup.image_of("image/png", "?") is None
