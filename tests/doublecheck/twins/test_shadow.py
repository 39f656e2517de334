from __future__ import annotations

import pytest

from doublecheck import Platform, Target
from doublecheck.comparing.differences import Class
from doublecheck.twins.shadow import Both

pytestmark = pytest.mark.smoke

CONFTEST = """
import pytest
from agentdouble import SimpleApp
from doublecheck import PlatformConfig

app = SimpleApp()

@app.entrypoint
async def answer(payload, headers):
    return "Hello."

@pytest.fixture(scope="session")
def platform_config():
    return PlatformConfig(apps=[app])
"""
TESTS = """
def test_both(platform):
    assert platform.invoke("x")
    session = platform.create_session("echo")
    assert ["hi"] == [event.text for event in platform.run(session, "hi")]
"""


def test_the_live_answer_counts(one: Platform, three: Platform) -> None:
    """The double's is compared to it."""
    both = Both(three, one)

    assert "Good day." == both.platform().invoke("x")
    assert [Class.DIVERGES] == [call.cls for call in both.calls]


def test_the_double_gets_its_own_ids(one: Platform, two: Platform) -> None:
    """In arguments of every kind, in streams and in what a client of a client asks."""
    both = Both(two, one)
    platform = both.platform()

    session = platform.create_session("echo")
    assert ["in pieces"] == [event.text for event in platform.run_sse(session, "in pieces")]
    assert 2 == len(platform.get_session("echo", session.id).events)
    with platform.mcp() as client:
        client.tools()
    platform.delete_session(session)

    operations = [call.operation for call in both.calls]
    assert ["/mcp tools/list", "DELETE /mcp"] == operations[-3:-1]
    assert {Class.SAME, Class.ASSUMED} == {call.cls for call in both.calls}
    assert all(call.double and call.live for call in both.calls)


def test_what_the_live_platform_refuses_is_raised(one: Platform, two: Platform) -> None:
    """And compared."""
    both = Both(two, one)

    with pytest.raises(Exception, match="404"):
        both.platform().get_session("echo", "no-such")

    assert [(Class.SAME, 404)] == [
        (call.cls, call.live and call.live.status) for call in both.calls
    ]


@pytest.mark.parametrize(
    ("against", "strict", "outcome"),
    [
        ("live", True, {"passed": 1}),
        ("other", False, {"passed": 1}),
        ("other", True, {"failed": 1}),
    ],
)
def test_a_difference_is_shown_and_fails_if_that_is_asked_for(
    request: pytest.FixtureRequest,
    pytester: pytest.Pytester,
    against: str,
    strict: bool,
    outcome: dict[str, int],
) -> None:
    """A test that passes on the live platform says nothing of the double by itself."""
    target: Target = request.getfixturevalue(against)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    words = ["--platform-target=both", f"--platform-url={target.url}"]

    result = pytester.runpytest_inprocess(*words, *(["--platform-twin-strict"] * strict))

    result.assert_outcomes(**outcome)
    if against == "other":
        result.stdout.fnmatch_lines(
            ["*POST /invoke: diverges", "*double 'Hello.', live 'Good day.'*"]
        )
    else:
        result.stdout.fnmatch_lines(["*double and live platform: 1 assumed, 2 same*"])


def test_strict_without_both_is_wrong_usage(pytester: pytest.Pytester) -> None:
    """There is nothing that it could be strict about; nor is there without a live platform."""
    strict = pytester.runpytest_inprocess("--platform-twin-strict")
    nowhere = pytester.runpytest_inprocess("--platform-target=both")

    assert [4, 4] == [strict.ret, nowhere.ret]
