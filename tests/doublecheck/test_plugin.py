from __future__ import annotations

import subprocess
import sys

import pytest

from doublecheck import Target

pytestmark = pytest.mark.smoke

HEAVY = (
    "agentdouble",
    "httpx",
    "jupyter_client",
    "pydantic",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
    "zmq",
)


def test_the_plugin_imports_nothing_heavy() -> None:
    """Test runs without a platform stay fast."""
    code = (
        "import sys, pytest, doublecheck.plugin, doublecheck.fixtures; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "[]\n" == ended.stdout


def test_an_unused_plugin_is_silent(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*platform: *")


@pytest.mark.parametrize(
    ("project", "is_reported"),
    [
        ("[tool.doublecheck]", True),
        ("[tool.doublecheck.targets.a]\nurl = 'http://a'", True),
        ("[ 'tool' . \"doublecheck\" ]", True),
        ("[project]\nname = 'x'\nversion = '1'\ndependencies = ['doublecheck']", False),
    ],
)
def test_only_a_project_table_adds_the_header(
    pytester: pytest.Pytester, project: str, is_reported: bool
) -> None:
    """A mere dependency does not."""
    pytester.makepyprojecttoml(project)

    result = pytester.runpytest_inprocess()

    assert is_reported is any(line.startswith("platform: ") for line in result.outlines)


def test_the_header_names_the_platform(pytester: pytest.Pytester, platform_server: Target) -> None:
    pytester.makepyfile("def test_url(platform): print(platform.url)")

    result = pytester.runpytest_inprocess("-s", f"--platform-url={platform_server.url}")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"platform: double at {platform_server.url} (--platform-url)"])
    result.stdout.fnmatch_lines([f"*{platform_server.url}"])


def test_live_without_a_url_is_wrong_usage(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--platform-target=live")

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(
        ["ERROR: --platform-target live needs a running platform: *--platform-url*"]
    )


def test_a_live_url_without_the_target_is_wrong_usage(
    pytester: pytest.Pytester, platform_server: Target
) -> None:
    """A live platform must be chosen explicitly."""
    pytester.makepyfile("def test_it(platform): pass")

    result = pytester.runpytest_inprocess(f"--platform-url={platform_server.url}/runtimes/none")

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stdout.fnmatch_lines(
        ["*answers, but not as a double: GET *_emulator/health returned HTTP 404: *=live*"]
    )


def test_a_dead_address_is_an_error_of_each_test(pytester: pytest.Pytester) -> None:
    """The code under test does not fail."""
    pytester.makepyfile("def test_it(platform): pass")

    result = pytester.runpytest_inprocess("--platform-url=http://127.0.0.1:1")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*UnreachableError: Nothing answers at http://127.0.0.1:1*"])


def test_the_environment_fills_gaps_of_a_project_target(
    pytester: pytest.Pytester, platform_server: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyprojecttoml(
        f"""
        [tool.doublecheck.targets.mine]
        kind = "double"
        url = "{platform_server.url}"
        region = "of the project"
        offers = ["application", "sandbox"]
        """
    )
    pytester.makepyfile(
        """
        def test_target(platform_server):
            assert ("mine", "of the project") == (platform_server.name, platform_server.region)
            assert platform_server.tool_id == "of-the-environment"
            assert {"application", "sandbox"} == platform_server.offered
        """
    )
    monkeypatch.setenv("PLATFORM_TOOL_REGION", "of the environment")
    monkeypatch.setenv("PLATFORM_TOOL_ID", "of-the-environment")

    result = pytester.runpytest_inprocess("--platform-target=mine")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            f"platform: mine, double, at {platform_server.url} (*pyproject.toml *.mine] url)",
            "  region: of the project (*pyproject.toml *.mine] region)",
            "  offers: application, sandbox (*pyproject.toml *.mine] offers)",
        ]
    )


@pytest.mark.parametrize(
    ("project", "message"),
    [
        ("[tool.doublecheck]\nregion = 'x'", "*pyproject.toml*tool.doublecheck*has two keys*"),
        ("[tool.doublecheck]\ntarget = 'x'", "*Unknown target 'x'*"),
    ],
)
def test_a_wrong_configuration_is_wrong_usage(
    pytester: pytest.Pytester, project: str, message: str
) -> None:
    pytester.makepyprojecttoml(project)

    result = pytester.runpytest_inprocess()

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
