from __future__ import annotations

import dataclasses
import datetime as dt
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from agentdouble import Emulator, SimpleApp
from agentdouble.core import profiles
from doublecheck import Platform, Target
from doublecheck.calibration import command, findings, profile_file
from doublecheck.calibration.finding import Finding
from doublecheck.calibration.probing import ProbePatience
from doublecheck.cli import app, main
from doublecheck.contracts.conftest import REFERENCE_AGENTS
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.core.exit_codes import ExitCode
from doublecheck.errors import CalibrationError
from tests.doublecheck import other_servers

LIVED = {
    "U-EXEC-SUCCESS": "true",
    "U-INVOKE-ENVELOPE": "object",
    "U-LIST-APPS": "detailed",
    "U-MCP-UNAUTHORIZED": "403",
    "U-PROBE-BODIES": "text",
    "U-SESSION-DELETE": "204",
    "U-SESSION-DUPLICATE": "400",
    "U-SNAPSHOT-AUTOMATIC": "never",
    "U-SNAPSHOT-DELETED": "deleted",
    "U-SNAPSHOT-NEW-INSTANCE": "new",
    "U-SNAPSHOT-STATUS": "ready",
    "U-TOOL-SESSION-READY": "creating",
    "U-TOOL-TTL-LIMITS": "from-60",
    "U-TOOL-TTL-UNIT": "minute",
    "U-TTL-AFTER": "error",
    "U-TTL-EXTENDS": "sliding",
    "U-WEBHOOKS": "none",
}
KEY = "the-key-of-the-deployment"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Emulator]:
    """A double in place of a deployment, with other answers than the defaults."""
    with Emulator(
        *reference_apps(), agents=REFERENCE_AGENTS, unknowns=LIVED, api_key=KEY
    ) as double:
        yield double


def live(double: Emulator, **facts: object) -> Target:
    """Return a double as a live target, without the double's own routes."""
    target = Target.of(double, reference_app=True)
    return dataclasses.replace(target, kind="live", **{"allow_writes": True, **facts})  # type: ignore[arg-type]


def calibrated(double: Emulator, *only: str, slow: bool = True, **facts: object) -> list[Finding]:
    patience = ProbePatience(
        lambda s: double.clock.advance(dt.timedelta(seconds=s)), moves_clock=True
    )
    with Platform(live(double, **facts)) as platform:
        return list(findings.calibrate(platform, slow=slow, only=only, patience=patience))


@pytest.mark.slow
def test_a_double_with_the_profile_behaves_as_the_deployment(
    deployment: Emulator, tmp_path: Path
) -> None:
    """Calibrating the second double finds the same answers."""
    file = tmp_path / "profile.toml"
    findings = calibrated(deployment, *LIVED)
    profile_file.write(file, "https://agent.example.com", findings)

    with Emulator(*reference_apps(), agents=REFERENCE_AGENTS, profile=file) as double:
        again = calibrated(double, *LIVED)

    assert LIVED == {finding.unknown: finding.answer for finding in findings}
    assert LIVED == profiles.read(file).unknowns
    assert LIVED == {finding.unknown: finding.answer for finding in again}


def test_the_evidence_has_exchanges_without_secrets(deployment: Emulator, tmp_path: Path) -> None:
    """It has the date and the target, too."""
    file = tmp_path / "profile.toml"
    findings = calibrated(deployment, "U-LIST-APPS", "U-MCP-UNAUTHORIZED", "U-TOOL-TTL-UNIT")
    profile_file.write(file, "https://agent.example.com", findings)

    about = profiles.read(file).evidence["U-LIST-APPS"]
    [exchange] = about["exchanges"]
    assert ("detailed", "https://agent.example.com") == (about["answer"], about["target"])
    assert findings[0].date == about["date"]
    assert exchange.startswith(f"GET {deployment.url}/list-apps\n-> HTTP 200\n")
    assert "doublecheck_reference" in exchange
    text = file.read_text()
    assert [] == [secret for secret in (KEY, deployment.credentials.secret_key) if secret in text]
    assert '"Key": "***' in text or '"Key":"***' in text


def test_skipped_unknowns_have_a_reason(deployment: Emulator) -> None:
    expected = {
        finding.unknown: (finding.answer, finding.reason)
        for finding in calibrated(
            deployment,
            "U-INVOKE-ERROR",
            "U-LIST-APPS",
            "U-PING-SLOW",
            "U-SESSION-CREATE",
            "U-WEBHOOKS",
            slow=False,
            allow_writes=False,
            reference_app=False,
            offered=frozenset({"application", "api_server"}),
        )
    }
    slow = calibrated(deployment, "U-TTL-AFTER", slow=False)

    assert {
        "U-INVOKE-ERROR": (
            "",
            "needs the reference application (doublecheck contracts app, --reference-app)",
        ),
        "U-SESSION-CREATE": (
            "",
            "creates something on the platform, and removes it; needs --allow-writes",
        ),
        "U-LIST-APPS": ("detailed", ""),
        "U-PING-SLOW": ("", "its answers cannot be told apart from outside"),
        "U-WEBHOOKS": ("", "the target does not offer a2a"),
    } == expected
    assert ["needs 62 s to pass, and --slow"] == [finding.reason for finding in slow]


def test_unexpected_answers_settle_nothing() -> None:
    """The others are still calibrated."""
    rubbish = SimpleApp("rubbish")

    @rubbish.entrypoint
    async def entrypoint(payload: dict, headers: dict) -> str:  # type: ignore[type-arg]
        raise RuntimeError("no")

    with Emulator(rubbish) as double, Platform(live(double)) as platform:
        only = ["U-INVOKE-ENVELOPE", "U-INVOKE-ERROR", "U-INVOKE-SSE-CHUNK", "U-LIST-APPS"]
        results = list(findings.calibrate(platform, only=only))

    assert ["U-INVOKE-ERROR", "U-LIST-APPS"] == [it.unknown for it in results if it.settled]
    assert all(finding.reason or finding.settled for finding in results)


STRANGER = other_servers.of(
    {("GET", path): (200, "ok") for path in ("/", "/ping", "/health", "/metrics")}
)
COMMAND = ["calibrate", "--target", "live", "--url"]


def test_a_stranger_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any server may have a /ping and a /health; nothing is settled, and no profile is written."""
    monkeypatch.chdir(tmp_path)
    with other_servers.serving(STRANGER) as server:
        monkeypatch.setattr("sys.argv", ["doublecheck", *COMMAND, server.url])
        with pytest.raises(SystemExit) as ended:
            main()

    error = capsys.readouterr().err
    assert ExitCode.COULD_NOT_ASK == ended.value.code
    assert f"doublecheck: Nothing at {server.url} answers as a platform: " in error
    assert "GET /list-apps answers HTTP 404" in error
    assert [] == list(tmp_path.iterdir())


def test_surfaces_that_are_not_there_settle_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are skipped by name."""
    monkeypatch.chdir(tmp_path)
    with other_servers.serving(other_servers.APPLICATION) as server:
        result = CliRunner().invoke(app, [*COMMAND, server.url, "--json"])

    found = {it["unknown"]: it for it in json.loads(result.stdout)["findings"]}
    assert (0, "text") == (result.exit_code, found["U-PROBE-BODIES"]["answer"])
    reason = f"api_server is not there: Nothing at {server.url} answers as an API server"
    for unknown in ("U-LIST-APPS", "U-HEALTH-CLASH"):
        assert found[unknown]["reason"].startswith(reason)
    assert found["U-WEBHOOKS"]["reason"].startswith("a2a is not there: ")


def test_an_existing_profile_is_extended(tmp_path: Path) -> None:
    """Other answers and comments stay."""
    file = tmp_path / "profile.toml"
    file.write_text(
        '# ours\n[unknowns]\nU-LIST-APPS = "names"  # as told\nU-TTL-EXTENDS = "sliding"\n'
    )
    date = "2026-11-21T22:00:00+00:00"
    profile_file.write(
        file,
        "https://one",
        [
            Finding("U-LIST-APPS", "detailed", date=date, exchanges=("GET /\n-> HTTP 200",)),
            Finding("U-RUN-CODE-RETURN", "object", date=date),
            Finding("U-SIGNING", reason="unclear"),
        ],
    )

    profile = profiles.read(file)
    assert {"U-LIST-APPS": "detailed", "U-TTL-EXTENDS": "sliding"} == profile.unknowns
    assert {"U-LIST-APPS", "U-RUN-CODE-RETURN"} == profile.evidence.keys()
    assert file.read_text().startswith("# ours\n")


@pytest.mark.parametrize("text", ["[unknowns", "[unknown]", "[unknowns]\nU-X = 'y'"])
def test_an_invalid_profile_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    """It is refused before any request."""
    file = tmp_path / "profile.toml"
    file.write_text(text)

    with pytest.raises(CalibrationError, match="cannot be extended"):
        profile_file.check(file)
    assert text == file.read_text()


def test_unsettled_unknowns_are_grouped_by_reason() -> None:
    """Control characters are made visible."""
    console = Console(file=io.StringIO(), width=100)
    settled = [
        Finding("U-TTL-AFTER", reason="needs 62 s to pass, and --slow"),
        Finding("U-LIST-APPS", reason="answers \x1b[2J"),
        Finding("U-TTL-DURING", reason="needs 62 s to pass, and --slow"),
    ]

    command.show(settled, console)

    assert [
        "not settled: needs 62 s to pass, and --slow",
        "  U-TTL-AFTER, U-TTL-DURING",
        "",
        "not settled: answers ␛[2J",
        "  U-LIST-APPS",
    ] == [line.rstrip() for line in console.file.getvalue().strip().splitlines()]  # type: ignore[attr-defined]


def test_the_command_writes_and_extends_the_profile(
    deployment: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output is a table or JSON."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOUBLECHECK_API_KEY", KEY)
    words = ["calibrate", "--url", deployment.url, "--target", "live", "--allow-writes"]

    table = CliRunner().invoke(app, [*words, "--only", "U-LIST-APPS", "--only", "U-TTL-AFTER"])
    as_json = CliRunner().invoke(app, [*words, "--only", "U-PROBE-BODIES", "--json"])

    assert (0, 0) == (table.exit_code, as_json.exit_code), (table.output, as_json.output)
    assert "1 of 2 settled, in profile.toml." in table.output
    assert "needs 62 s to pass, and --slow" in table.output
    [finding] = json.loads(as_json.stdout)["findings"]
    assert ("U-PROBE-BODIES", "text", True) == tuple(
        finding[name] for name in ("unknown", "answer", "settled")
    )
    assert {"U-LIST-APPS": "detailed", "U-PROBE-BODIES": "text"} == profiles.read(
        Path("profile.toml")
    ).unknowns


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--only", "U-LIST-APP", "--url", "http://127.0.0.1:1"), "Did you mean U-LIST-APPS?"),
        ((), "Give the address of the deployment"),
        (("--url", "http://127.0.0.1:1", "--target", "live"), "Nothing answers"),
    ],
)
def test_invalid_usage_writes_no_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["calibrate", *words])

    assert message in f"{result.output}{result.exception}"
    assert not Path("profile.toml").exists()
