"""A server of another protocol gets no false pass and no false failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doublecheck.contracts.run_result import Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.core.exit_codes import ExitCode
from doublecheck.run import pytest_run
from tests.doublecheck import other_servers
from tests.doublecheck.other_servers import Answers

pytestmark = pytest.mark.once

MODULES = [f"test_{name}" for name in ("invocation", "probes", "api_server", "mcp", "a2a", "smoke")]
PROTOCOLS: dict[str, Answers] = {
    "INV PRB": other_servers.APPLICATION,
    "API": other_servers.api_server,
    "MCP": other_servers.mcp,
    "A2A": other_servers.a2a,
}
OFFERS = {"INV PRB": "application", "API": "api_server", "MCP": "mcp", "A2A": "a2a"}
NOBODYS = (other_servers.json_rpc, other_servers.web_site, other_servers.failing)
CARRIED_OUT = {Verdict.PASSED, Verdict.FAILED}

Check = Callable[..., Run]


@pytest.fixture
def check() -> Check:
    """Run the checks against a live target of unknown kind."""

    def run(url: str, *arguments: str) -> Run:
        live = ("--platform-target=live", f"--platform-url={url}", "--platform-examples=1")
        modules = [*MODULES, "test_control_plane", "test_sandbox"]
        return pytest_run.run(
            [*live, *arguments, "-p", "no:faulthandler"], verbose=False, modules=modules
        )

    return run


def groups(run: Run, *verdicts: Verdict) -> set[str]:
    """Return the groups of the clauses with a check that has one of these verdicts."""
    return {check.clause[:3] for check in run.checks if check.verdict in verdicts}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_undeclared_surface_without_evidence_is_not_offered(check: Check, protocol: str) -> None:
    """The surface that the server does have is checked."""
    with other_servers.serving(PROTOCOLS[protocol]) as server:
        run = check(server.url)

    assert groups(run, *CARRIED_OUT) <= {*protocol.split()}, run.checks
    assert groups(run, Verdict.PASSED), run.checks
    assert set() == groups(run, Verdict.ERROR, Verdict.COULD_NOT_ASK)
    reason = next(check.reason for check in run.checks if check.verdict is Verdict.NOT_OFFERED)
    assert reason.startswith("not offered: ")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_declared_but_missing_surface_could_not_be_asked(check: Check, protocol: str) -> None:
    """A 404 of a missing route is not a refusal, and the reason mentions it."""
    others = {name for key, name in OFFERS.items() if key != protocol}
    with other_servers.serving(PROTOCOLS[protocol]) as server:
        run = check(server.url, f"--platform-offers={','.join(others)}", "--platform-allow-writes")

    assert set() == groups(run, *CARRIED_OUT), run.checks
    assert ExitCode.COULD_NOT_ASK is run.exit_code
    assert any("HTTP 404" in check.reason for check in run.checks)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_smoke_level_fails_for_a_declared_but_missing_surface(
    check: Check, protocol: str
) -> None:
    others = {name for key, name in OFFERS.items() if key != protocol}
    with other_servers.serving(PROTOCOLS[protocol]) as server:
        run = check(server.url, "--platform-level=smoke", f"--platform-offers={','.join(others)}")

    failing = {clause[:3] for key in PROTOCOLS if key != protocol for clause in key.split()}
    assert failing - {"INV"} == groups(run, Verdict.FAILED)
    assert set() == groups(run, Verdict.PASSED)
    assert ExitCode.FAILED is run.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("answers", NOBODYS, ids=["json-rpc", "web site", "errors"])
@pytest.mark.parametrize("offers", [(), ("--platform-offers=application,api_server,mcp,a2a",)])
def test_a_server_without_any_surface_could_not_be_asked(
    check: Check, answers: Answers, offers: tuple[str, ...]
) -> None:
    """Declared surfaces do not change this."""
    with other_servers.serving(answers) as server:
        run = check(server.url, *offers)

    assert set() == groups(run, *CARRIED_OUT), run.checks
    assert ExitCode.COULD_NOT_ASK is run.exit_code


def test_a_server_that_needs_a_key_names_the_variable_to_set(check: Check) -> None:
    """A refusal of every request is no evidence about a surface."""
    with other_servers.serving(other_servers.closed) as server:
        run = check(server.url, "-k", "PRB-01 or INV-08")

    observable = [check for check in run.checks if check.verdict is not Verdict.NOT_OBSERVABLE]
    assert {"PRB-01": Verdict.COULD_NOT_ASK, "INV-08": Verdict.COULD_NOT_ASK} == {
        check.clause: check.verdict for check in observable
    }
    assert all("If it needs a key, set DOUBLECHECK_API_KEY" in check.reason for check in observable)


def test_one_wrong_answer_of_an_existing_surface_is_a_failure(check: Check) -> None:
    """The surface's other answers are the evidence that it exists."""

    def broken(method: str, path: str, content: bytes) -> other_servers.Answer:
        if path == "/list-apps":
            return 500, {"detail": "broken"}
        return other_servers.api_server(method, path, content)

    with other_servers.serving(broken) as server:
        run = check(server.url, "-k", "API-01 or API-15")

    verdicts = {check.clause: check.verdict for check in run.checks if check.verdict in CARRIED_OUT}
    assert {"API-01": Verdict.FAILED, "API-15": Verdict.PASSED} == verdicts
