"""What displays are made of."""

from __future__ import annotations

from doublecheck.core import markup


def test_what_is_no_markup_is_escaped() -> None:
    """A value never becomes HTML, wherever it stands."""
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


def test_a_long_text_says_how_much_is_missing() -> None:
    """And where all of it is."""
    expected = "xxx\n… 1,997 more characters; result.stdout has all of it"

    assert expected == markup.clipped("x" * 2000, 3, source="result.stdout")
    assert "xxx" == markup.clipped("xxx", 3)


def test_an_image_may_have_arrived_in_the_alphabet_of_urls() -> None:
    """Agents' events have it, kernels the usual one; what is no base64 is no image."""
    html = markup.image("image/png", b"\xfb\xff")

    assert html == markup.image_of("image/png", "-_8=") == markup.image_of("image/png", "+/8=")
    assert markup.image_of("image/png", "?") is None
