from __future__ import annotations

import json
import os

import pytest

import agentdouble
from doublecheck import Platform, Target
from doublecheck.fixtures import PlatformEnv
from doublecheck.platform import PlatformClock


def test_the_platform_is_this_sessions_double(platform: Platform, platform_server: Target) -> None:
    """It is reset for each test: no session and nothing in the journal."""
    assert platform_server == platform.target
    assert ((), ()) == (platform.sessions(), platform.journal())


def test_the_clock_is_the_platforms(platform: Platform, platform_clock: PlatformClock) -> None:
    """Moving it destroys what is due."""
    platform.run_code("1")

    platform_clock.advance(minutes=30)

    assert () == platform.sessions()


def test_run_code_finds_the_platform_by_the_environment(platform_env: PlatformEnv) -> None:
    """The code under test needs nothing but its environment."""
    assert json.loads(agentdouble.run_code("1 + 1"))["success"]


def test_the_environment_is_put_back(pytester: pytest.Pytester) -> None:
    """A real client's names are set on request; after the test they are as before."""
    pytester.makepyfile(
        """
        import os
        import pytest

        def test_set(platform_env, platform_server):
            assert platform_env.use("veadk")["AGENTKIT_TOOL_ID"] == platform_server.tool_id
            assert os.environ["AGENTKIT_TOOL_ID"] == platform_server.tool_id
            assert os.environ["PLATFORM_TOOL_ID"] == platform_server.tool_id

        def test_back():
            assert not [name for name in os.environ if name.startswith(("AGENTKIT_", "PLATFORM_"))]

        def test_unknown(platform_env):
            with pytest.raises(ValueError, match="platform, veadk, agentkit"):
                platform_env.use("nobody")
        """
    )
    before = dict(os.environ)

    pytester.runpytest_inprocess().assert_outcomes(passed=3)

    assert before == {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"} | {
        k: v for k, v in before.items() if k == "PYTEST_CURRENT_TEST"
    }


def test_what_the_double_serves_can_be_overridden(pytester: pytest.Pytester) -> None:
    """An application of one's own answers, with settings of one's own."""
    pytester.makeconftest(
        """
        import pytest
        from agentdouble import SimpleApp
        from doublecheck import PlatformConfig

        @pytest.fixture(scope="session")
        def platform_config():
            app = SimpleApp("mine")

            @app.entrypoint
            async def entrypoint(payload, headers):
                return f"mine: {payload['prompt']}"

            return PlatformConfig(apps=(app,), settings={"tool_id": "t-mine"})
        """
    )
    pytester.makepyfile(
        """
        def test_it(platform):
            assert platform.invoke("hi") == "mine: hi"
            assert platform.target.tool_id == "t-mine"
        """
    )

    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_our_fixtures_request_only_ours(pytester: pytest.Pytester) -> None:
    """Fixtures of a user that bear likely names do not reach into them."""
    names = ("clock", "server", "client", "app", "url", "env", "config", "settings", "target")
    fixtures = "\n".join(f"@pytest.fixture\ndef {name}(): raise RuntimeError" for name in names)
    pytester.makeconftest(f"import pytest\n\n{fixtures}\n")
    pytester.makepyfile("def test_it(platform, platform_clock, platform_env): platform.ping()")

    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_configuration_that_is_none_is_refused(pytester: pytest.Pytester) -> None:
    """What platform_config returns must say what it is."""
    pytester.makeconftest(
        "import pytest\n\n"
        "@pytest.fixture(scope='session')\ndef platform_config():\n    return {'apps': []}\n"
    )
    pytester.makepyfile("def test_it(platform): pass")

    result = pytester.runpytest_inprocess()

    result.stdout.fnmatch_lines(["*must return a doublecheck.PlatformConfig, not a dict.*"])
