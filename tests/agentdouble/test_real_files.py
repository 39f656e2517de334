"""What a double does in the background keeps away from files that a test fakes."""

from __future__ import annotations

import threading

from agentdouble.real_files import files_are_faked, to_be_faked, used_in_background


def test_files_are_faked_when_nothing_in_the_background_uses_them() -> None:
    """And nothing begins to, once a test is about to."""
    begun, never = threading.Event(), threading.Event()
    seen: list[str] = []

    def work() -> None:
        with used_in_background():
            begun.set()
            while not files_are_faked():
                never.wait(0.001)
            seen.append("the work ends")

    working = threading.Thread(target=work)
    working.start()
    assert begun.wait(10)
    with to_be_faked():
        seen.append("files are faked")
    working.join(10)

    assert ["the work ends", "files are faked"] == seen
    assert not files_are_faked()
