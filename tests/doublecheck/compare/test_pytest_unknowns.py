from __future__ import annotations

from pathlib import Path

import pytest

from doublecheck import Target

EXAMPLE = """
import httpx

def test_failing_code(platform):
    assert not platform.run_code("1/0").success

def test_running_code(platform):
    assert platform.run_code("1").success

def test_of_another_client(platform_server):
    assert httpx.get(platform_server.url + "/ping").json()["status"]

def test_without_a_platform():
    pass
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile that settles how failing code is reported."""
    file = tmp_path / "profile.toml"
    file.write_text('[unknowns]\nU-EXEC-SUCCESS = "true"\n')
    return file


@pytest.fixture(autouse=True)
def _keys(platform_server: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the keys of this run's double; inner tests that start a double use its keys."""
    for name, value in platform_server.environment().items():
        if not name.endswith(("HOST", "SCHEME")):
            monkeypatch.setenv(name, value)


def run(pytester: pytest.Pytester, *options: str, test: str = EXAMPLE) -> pytest.RunResult:
    pytester.makepyfile(test_it=test)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)


def test_the_summary_lists_unknowns_with_their_tests(
    pytester: pytest.Pytester, platform_server: Target
) -> None:
    """It includes requests of the test's own HTTP client."""
    result = run(pytester, "-v", f"--platform-url={platform_server.url}")

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "-* 3 tests relied on * unknowns, which the specification leaves open *-",
            "U-EXEC-LIMITS (2 tests): test_it.py::test_failing_code, test_it.py::test_running_code",
            "U-EXEC-SUCCESS (1 test): test_it.py::test_failing_code",
            "U-PROBE-BODIES (1 test): test_it.py::test_of_another_client",
        ]
    )


def test_the_summary_is_one_line_by_default(
    pytester: pytest.Pytester, platform_server: Target
) -> None:
    url = f"--platform-url={platform_server.url}"
    result = run(pytester, url, "-k", "another_client")

    result.stdout.fnmatch_lines(["1 test relied on 2 unknowns, which *(-v shows them)"])
    result.stdout.no_fnmatch_line("U-PROBE-BODIES*")


@pytest.mark.slow
def test_strict_fails_tests_that_rely_on_unknowns(
    pytester: pytest.Pytester, platform_server: Target
) -> None:
    """The error says how to settle each. A failing test keeps its own reason."""
    test = EXAMPLE + "\ndef test_wrong(platform):\n    assert platform.ping() == 'wrong'\n"
    result = run(pytester, f"--platform-url={platform_server.url}", "--platform-strict", test=test)

    result.assert_outcomes(passed=1, failed=4)
    refusal = "*--platform-strict: this test relies on U-PROBE-BODIES, U-PROBE-ERROR, which *no"
    result.stdout.fnmatch_lines(
        [
            f'{refusal} profile settles*add it to the profile*[[]unknowns]: U-PROBE-BODIES = "object".*'
        ]
    )
    result.stdout.fnmatch_lines(["*test_wrong - *AssertionError*"])


@pytest.mark.slow
def test_unknowns_settled_by_a_profile_are_not_reported(
    pytester: pytest.Pytester, profile: Path
) -> None:
    """The double behaves as the profile says."""
    test = """
        import os

        def test_it(platform, platform_clock):
            assert platform.run_code("1/0").success
            assert os.environ["AGENTDOUBLE_PROFILE"]
    """
    result = run(pytester, "-v", f"--platform-profile={profile}", test=test)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["U-EXEC-LIMITS (1 test): *"])
    result.stdout.no_fnmatch_line("U-EXEC-SUCCESS*")


@pytest.mark.slow
def test_sweep_reports_sensitive_tests(pytester: pytest.Pytester, platform_server: Target) -> None:
    """It tries each alternative that a test relied on and keeps wider fixtures."""
    test = """
        import httpx
        import pytest

        @pytest.fixture(scope="module")
        def module():
            yield print("module made")
            print("module ended")

        @pytest.fixture
        def own():
            yield print("own made")

        def test_success(platform, module, own):
            assert not platform.run_code("1/0").success

        def test_tolerant(platform, module):
            assert platform.run_code("1").success

        def test_picky(platform_server):
            assert httpx.get(platform_server.url + "/ping").text == "no such text"

        def test_nothing(module):
            pass
    """
    url = platform_server.url
    result = run(pytester, "-s", f"--platform-url={url}", "--platform-sweep", test=test)

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_success: sensitive to U-EXEC-SUCCESS: passes with `false`, fails*",
            "1 sensitive, 2 not",
        ]
    )
    counts = [result.stdout.str().count(f"{event}") for event in ("module made", "module ended")]
    assert [1, 1] == counts
    assert 1 < result.stdout.str().count("own made")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--platform-strict", "--platform-sweep"), "remove one of them"),
        (("--platform-profile=none.toml",), "--platform-profile: The profile *none.toml cannot be"),
        (
            ("--platform-profile=p.toml", "--platform-url=http://127.0.0.1:1"),
            "*agentdouble serve --profile",
        ),
    ],
)
def test_contradictory_or_invalid_options_are_usage_errors(
    pytester: pytest.Pytester, options: tuple[str, ...], message: str
) -> None:
    """The error has the remedy."""
    result = run(pytester, *options)

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines([f"ERROR: *{message}*"])
