"""The calls of a failed test, in its report."""

from __future__ import annotations

import pytest

# Imported here, so that a pytester run does not forget it and mix its classes with older ones.
import doublecheck.reports.captured_calls  # noqa: F401

TITLE = "*- Captured platform calls -*"
SET_UP = """
    import pytest

    @pytest.fixture
    def prepared(platform_sandbox):
        platform_sandbox.run("import nowhere\\nx = 42")
"""


@pytest.mark.slow
def test_a_failed_test_shows_its_calls(pytester: pytest.Pytester) -> None:
    """What was sent, what came, and the failure of the set-up that nobody looked at."""
    pytester.makepyfile(
        SET_UP
        + """
    def test_it(prepared, platform_sandbox, platform):
        platform.ping()
        assert platform_sandbox.run("print(x)").stdout == "42"
    """
    )

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E * The code raised ModuleNotFoundError: No module named 'nowhere'",
            "E * The code raised NameError: name 'x' is not defined",
            TITLE,
            "POST InvokeTool in agent_test_*: 200, * ms",
            "    python3:",
            "        import nowhere",
            "        x = 42",
            "        ModuleNotFoundError: No module named 'nowhere'",
            "GET /ping: 200, * ms",
            "    python3: print(x)",
            "        NameError: name 'x' is not defined",
        ]
    )
    result.stdout.no_fnmatch_line("*/_emulator/*")


@pytest.mark.slow
def test_the_calls_of_the_code_under_test_are_among_them(pytester: pytest.Pytester) -> None:
    """They are in the journal of the double."""
    pytester.makepyfile(
        """
        import agentdouble

        def test_it(platform, platform_env):
            agentdouble.run_code("print('by the code under test')")
            assert False
        """
    )

    result = pytester.runpytest_inprocess()

    result.stdout.fnmatch_lines([TITLE, "    python3: print('by the code under test')"])


@pytest.mark.slow
def test_what_controls_a_terminal_does_not_reach_it(pytester: pytest.Pytester) -> None:
    """Colours are left out, and the rest is made visible."""
    pytester.makepyfile(
        r"""
        def test_it(platform):
            platform.run_code(r"print('\033[31mred\033[0m', '\033]0;title\007', '\u202e')")
            assert False
        """
    )

    result = pytester.runpytest_inprocess()

    result.stdout.fnmatch_lines(["    stdout: red *;title* *"])
    shown = result.stdout.str().partition("stdout: red")[2]
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_calls_that_reach_nothing_are_told(pytester: pytest.Pytester) -> None:
    """Of another platform, too, with its address."""
    pytester.makepyfile(
        """
        from doublecheck import Platform, Secret, Target

        def test_it(platform):
            platform.ping()
            with Platform(Target(url="http://127.0.0.1:1", api_key=Secret("correct-horse"))) as other:
                other.invoke("correct-horse")
        """
    )

    result = pytester.runpytest_inprocess()

    result.stdout.fnmatch_lines(
        [
            TITLE,
            "GET /ping of http://127.0.0.1:*: 200, * ms",
            "POST /invoke of http://127.0.0.1:1: ConnectError: *, * ms",
            '    sent: {"prompt": "***"}',
        ]
    )
    shown = result.stdout.str().partition("Captured platform calls")[2]
    assert "correct-horse" not in shown


@pytest.mark.parametrize("option", ["--show-capture=no", "--show-capture=log"])
def test_show_capture_hides_them(pytester: pytest.Pytester, option: str) -> None:
    """As it hides whatever else was captured."""
    pytester.makepyfile("def test_it(platform): assert platform.ping() is None")

    result = pytester.runpytest_inprocess(option)

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line(TITLE)


@pytest.mark.slow
def test_a_worker_of_xdist_brings_them(pytester: pytest.Pytester) -> None:
    """They are a section of its report."""
    pytester.makepyfile("def test_it(platform): assert platform.run_code('1 / 0').text == '1'")

    result = pytester.runpytest_inprocess("-n1", "-p", "no:benchmark")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E * The code raised ZeroDivisionError: *", TITLE])


@pytest.mark.slow
def test_what_passes_or_asks_nothing_shows_nothing(pytester: pytest.Pytester) -> None:
    """And the comparisons of other tests are as they were."""
    pytester.makepyfile(
        """
        def test_passes(platform): assert platform.run_code("1 / 0").text is None
        def test_asks_nothing(): assert "" == "42"
        def test_is_unrelated(platform):
            platform.run_code("1 / 0")
            assert "apple" == "pear"
        """
    )

    result = pytester.runpytest_inprocess("--show-capture=no", "-rP")

    result.assert_outcomes(passed=1, failed=2)
    result.stdout.no_fnmatch_line("*ZeroDivisionError*")


@pytest.mark.slow
def test_long_texts_are_shortened(pytester: pytest.Pytester) -> None:
    """Their beginning and their end are what one looks for."""
    pytester.makepyfile(
        """
        def test_it(platform):
            platform.run_code("for n in range(500): print(n)")
            for _ in range(25):
                platform.ping()
            assert False
        def test_lines(platform):
            platform.run_code("for n in range(50): print(n)")
            assert False
        """
    )

    result = pytester.runpytest_inprocess()

    result.stdout.fnmatch_lines(["... 6 earlier calls", "        ... 38 lines ...", "        49"])
