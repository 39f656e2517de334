"""Servers with only some routes of a platform: each root cause is one finding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from doublecheck.contracts.run_result import Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.core.exit_codes import ExitCode
from doublecheck.run import pytest_run
from tests.doublecheck import other_servers
from tests.doublecheck.other_servers import Answers
from tests.ports import served

pytestmark = pytest.mark.once

SESSIONS = "GET /apps/{app}/users/{user}/sessions answers HTTP 404"
OF_SESSIONS = {f"API-{number:02}" for number in (2, 3, 4, 5, 6, 13, 17, 18)}
OF_RUNS = {f"API-{number:02}" for number in (7, 8, 9, 10, 11, 12, 16)}
ALL = ("--platform-reference-app", "--platform-allow-writes")
NAMES = ("invocation", "probes", "api_server", "agent_runs", "access", "smoke")
TOOLS = ("mcp", "mcp_services", "a2a", "smoke")


def serving(*routes: Route) -> AbstractContextManager[str]:
    """Serve routes on this machine until the context ends. Yield the URL."""
    return served(Starlette(routes=routes))


def returns(path: str, document: Any, method: str = "GET") -> Route:
    async def answer(_: Request) -> JSONResponse:
        return JSONResponse(document)

    return Route(path, answer, methods=[method])


FOUR = (
    returns("/invoke", "ok", "POST"),
    returns("/ping", "pong"),
    returns("/list-apps", ["agent"]),
    returns("/run", [], "POST"),
)


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    """The URL of a server with four routes."""
    with serving(*FOUR) as url:
        yield url


def check(url: str, *options: str, modules: tuple[str, ...] = NAMES) -> Run:
    live = ("--platform-target=live", f"--platform-url={url}", "-p", "no:faulthandler")
    return pytest_run.run(
        [*live, *options], verbose=False, modules=[f"test_{name}" for name in modules]
    )


def passed(run: Run) -> set[str]:
    return {check.clause for check in run.checks if check.verdict is Verdict.PASSED}


@pytest.mark.slow
def test_each_missing_route_is_one_finding(stranger: str) -> None:
    """Checks that need its answer do not pass."""
    run = check(stranger, *ALL, "--platform-offers=application,api_server")

    findings = {finding.cause: {*finding.clauses} for finding in run.findings()}
    routes = {cause: ids for cause, ids in findings.items() if "HTTP 404" in cause}
    assert len(findings) == len(run.findings()) < 20
    assert OF_SESSIONS | OF_RUNS | {"AUT-01"} == routes.pop(SESSIONS)
    assert {
        "GET /health answers HTTP 404": {"API-14", "PRB-02", "PRB-07"},
        "GET /liveness answers HTTP 404": {"PRB-04", "PRB-07"},
        "GET /readiness answers HTTP 404": {"PRB-03", "PRB-07"},
        "GET /version answers HTTP 404": {"API-15", "AUT-01"},
    } == routes
    assert set() == passed(run) & (OF_SESSIONS | OF_RUNS - {"API-16"})
    assert all(verdict is Verdict.FAILED for verdict in _verdicts(run, OF_SESSIONS))


@pytest.mark.parametrize("options", [(), ALL])
def test_undeclared_sessions_are_not_offered(stranger: str, options: tuple[str, ...]) -> None:
    """The server has an API server's other routes."""
    run = check(stranger, *options)

    assert set() == passed(run) & OF_SESSIONS
    assert {Verdict.FAILED} not in [{*_verdicts(run, {id_})} for id_ in OF_SESSIONS]
    reasons = [check.reason for check in run.checks if check.verdict is Verdict.NOT_OFFERED]
    assert any(SESSIONS in reason for reason in reasons)
    assert "API-16" in passed(run)


def _everything_lists(method: str, path: str, _: bytes) -> other_servers.Answer:
    return 200, ["agent"]


def _paths_in_errors(method: str, path: str, _: bytes) -> other_servers.Answer:
    fixed = {"/list-apps": ["agent"], "/run": [], "/ping": "pong"}
    return (200, fixed[path]) if path in fixed else (404, f"Cannot {method} {path}")


@pytest.mark.parametrize("answers", [_everything_lists, _paths_in_errors])
def test_answers_to_any_path_are_no_evidence_of_sessions(answers: other_servers.Answers) -> None:
    with other_servers.serving(answers) as server:
        options = ("--platform-offers=api_server", "-k", " or ".join(OF_SESSIONS))
        run = check(server.url, *ALL, *options, modules=("api_server",))

    assert set() == passed(run)
    assert 1 == len(run.findings()), run.findings()


def test_a_server_with_sessions_but_without_runs_passes_no_clause_about_runs() -> None:
    """Runs without a required field end in an error, as they should, for another reason."""
    with other_servers.serving(other_servers.api_server) as server:
        run = check(server.url, *ALL, "--platform-offers=api_server", modules=("agent_runs",))

    assert set() == passed(run)
    assert {"POST /run answers HTTP 404", "POST /run_sse answers HTTP 404"} <= {
        cause for finding in run.findings() for cause in finding.cause.split("; ")
    }


def _without(answers: other_servers.Answers, method: str) -> other_servers.Answers:
    """Answer as another server, but refuse a method of JSON-RPC."""

    def answer(verb: str, path: str, content: bytes) -> other_servers.Answer:
        if f'"{method}"'.encode() in content:
            return 200, other_servers.NO_METHOD
        return answers(verb, path, content)

    return answer


@pytest.mark.parametrize(
    ("answers", "method", "surface", "clause"),
    [
        (other_servers.mcp, "tools/list", "mcp", "MCP-03"),
        (other_servers.a2a, "tasks/get", "a2a", "A2A-04"),
        (other_servers.a2a, "message/send", "a2a", "A2A-02"),
    ],
)
def test_a_missing_method_is_a_missing_route(
    answers: other_servers.Answers, method: str, surface: str, clause: str
) -> None:
    with other_servers.serving(_without(answers, method)) as server:
        run = check(server.url, f"--platform-offers={surface}", "-k", clause, modules=TOOLS)

    assert [
        f"POST /{'mcp' * (surface == 'mcp')} {method} answers HTTP 200 with something else"
    ] == [finding.cause for finding in run.findings()]
    assert set() == passed(run)


def _verdicts(run: Run, ids: set[str]) -> list[Verdict]:
    return [verdict for clause, verdict in run.verdicts().items() if clause.id in ids]


MODULES = ("invocation", "probes", "api_server", *TOOLS, "control_plane", "sandbox")
PROTOCOLS: dict[str, Answers] = {
    "INV PRB": other_servers.APPLICATION,
    "API": other_servers.api_server,
    "MCP": other_servers.mcp,
    "A2A": other_servers.a2a,
}
OFFERS = {"INV PRB": "application", "API": "api_server", "MCP": "mcp", "A2A": "a2a"}
NOBODYS = (other_servers.json_rpc, other_servers.web_site, other_servers.failing)
CARRIED_OUT = {Verdict.PASSED, Verdict.FAILED}


def check_everything(url: str, *options: str) -> Run:
    """Run the checks against a live target of unknown kind."""
    return check(url, "--platform-examples=1", *options, modules=MODULES)


def groups(run: Run, *verdicts: Verdict) -> set[str]:
    """Return the groups of the clauses with a check that has one of these verdicts."""
    return {check.clause[:3] for check in run.checks if check.verdict in verdicts}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_undeclared_surface_without_evidence_is_not_offered(protocol: str) -> None:
    """The surface that the server does have is checked."""
    with other_servers.serving(PROTOCOLS[protocol]) as server:
        run = check_everything(server.url)

    assert groups(run, *CARRIED_OUT) <= {*protocol.split()}, run.checks
    assert groups(run, Verdict.PASSED), run.checks
    assert set() == groups(run, Verdict.ERROR, Verdict.COULD_NOT_ASK)
    reason = next(check.reason for check in run.checks if check.verdict is Verdict.NOT_OFFERED)
    assert reason.startswith("not offered: ")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_declared_but_missing_surface_could_not_be_asked(protocol: str) -> None:
    """A 404 of a missing route is not a refusal, and the reason mentions it."""
    others = {name for key, name in OFFERS.items() if key != protocol}
    with other_servers.serving(PROTOCOLS[protocol]) as server:
        run = check_everything(
            server.url, f"--platform-offers={','.join(others)}", "--platform-allow-writes"
        )

    assert set() == groups(run, *CARRIED_OUT), run.checks
    assert ExitCode.COULD_NOT_ASK is run.exit_code
    assert any("HTTP 404" in check.reason for check in run.checks)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_smoke_level_fails_for_a_declared_but_missing_surface(protocol: str) -> None:
    others = {name for key, name in OFFERS.items() if key != protocol}
    with other_servers.serving(PROTOCOLS[protocol]) as server:
        run = check_everything(
            server.url, "--platform-level=smoke", f"--platform-offers={','.join(others)}"
        )

    failing = {clause[:3] for key in PROTOCOLS if key != protocol for clause in key.split()}
    assert failing - {"INV"} == groups(run, Verdict.FAILED)
    assert set() == groups(run, Verdict.PASSED)
    assert ExitCode.FAILED is run.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("answers", NOBODYS, ids=["json-rpc", "web site", "errors"])
@pytest.mark.parametrize("offers", [(), ("--platform-offers=application,api_server,mcp,a2a",)])
def test_a_server_without_any_surface_could_not_be_asked(
    answers: Answers, offers: tuple[str, ...]
) -> None:
    """Declared surfaces do not change this."""
    with other_servers.serving(answers) as server:
        run = check_everything(server.url, *offers)

    assert set() == groups(run, *CARRIED_OUT), run.checks
    assert ExitCode.COULD_NOT_ASK is run.exit_code


def test_a_server_that_needs_a_key_names_the_variable_to_set() -> None:
    """A refusal of every request is no evidence about a surface."""
    with other_servers.serving(other_servers.closed) as server:
        run = check_everything(server.url, "-k", "PRB-01 or INV-08")

    observable = [check for check in run.checks if check.verdict is not Verdict.NOT_OBSERVABLE]
    assert {"PRB-01": Verdict.COULD_NOT_ASK, "INV-08": Verdict.COULD_NOT_ASK} == {
        check.clause: check.verdict for check in observable
    }
    assert all("If it needs a key, set DOUBLECHECK_API_KEY" in check.reason for check in observable)


def test_one_wrong_answer_of_an_existing_surface_is_a_failure() -> None:
    """The surface's other answers are the evidence that it exists."""

    def broken(method: str, path: str, content: bytes) -> other_servers.Answer:
        if path == "/list-apps":
            return 500, {"detail": "broken"}
        return other_servers.api_server(method, path, content)

    with other_servers.serving(broken) as server:
        run = check_everything(server.url, "-k", "API-01 or API-15")

    verdicts = {check.clause: check.verdict for check in run.checks if check.verdict in CARRIED_OUT}
    assert {"API-01": Verdict.FAILED, "API-15": Verdict.PASSED} == verdicts
