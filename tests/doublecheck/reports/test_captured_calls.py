"""Platform calls in the report of a failed test."""

from __future__ import annotations

import pytest

# Imported here, so that a pytester run does not forget it and mix its classes with older ones.
import doublecheck.reports.captured_calls  # noqa: F401

TITLE = "*- Captured platform calls -*"


@pytest.mark.slow
def test_a_failed_test_shows_its_calls(pytester: pytest.Pytester) -> None:
    """They include calls of fixtures and of the code under test; control characters are visible."""
    pytester.makepyfile(
        r"""
        import agentdouble
        import pytest

        @pytest.fixture
        def prepared(platform_sandbox):
            platform_sandbox.run("import nowhere\nx = 42")

        def test_fails(prepared, platform_sandbox, platform, platform_env):
            platform.ping()
            platform.run_code(r"print('\033[31mred\033[0m', '\033]0;title\007', '\u202e')")
            agentdouble.run_code("for n in range(50): print(n)")
            assert platform_sandbox.run("print(x)").stdout == "42"

        def test_passes(platform):
            assert platform.run_code("1 / 0").text is None
        """
    )

    result = pytester.runpytest_inprocess("-n1", "-p", "no:benchmark")

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            TITLE,
            "POST InvokeTool in agent_test_*: 200, * ms",
            "    python3:",
            "        import nowhere",
            "        x = 42",
            "        ModuleNotFoundError: No module named 'nowhere'",
            "GET /ping: 200, * ms",
            "    stdout: red *;title* *",
            "    python3: for n in range(50): print(n)",
            "        ... 38 lines ...",
            "        49",
            "    python3: print(x)",
            "        NameError: name 'x' is not defined",
        ]
    )
    output = result.stdout.str().partition("stdout: red")[2]
    assert not {"\x1b", "\x07", "\u202e"} & set(output)
    assert "ZeroDivisionError" not in output


@pytest.mark.parametrize(("options", "expected"), [((), 1), (("--show-capture=no",), 0)])
def test_failed_calls_are_shown_without_secrets(
    pytester: pytest.Pytester, options: tuple[str, ...], expected: int
) -> None:
    """Calls to another platform show its address; ``--show-capture=no`` hides the section."""
    pytester.makepyfile(
        """
        from doublecheck import Platform, Secret, Target

        def test_it(platform):
            platform.ping()
            with Platform(Target(url="http://127.0.0.1:1", api_key=Secret("correct-horse"))) as other:
                other.invoke("correct-horse")
        """
    )

    result = pytester.runpytest_inprocess(*options)

    result.assert_outcomes(failed=1)
    section = result.stdout.str().partition("Captured platform calls")[2]
    assert expected == section.count('sent: {"prompt": "***"}')
    assert expected == section.count("POST /invoke of http://127.0.0.1:1: ConnectError: ")
    assert "correct-horse" not in section
