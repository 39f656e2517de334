from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import jsonschema
import pytest

from agentdouble.apps import simple
from doublecheck import Platform, Target, check
from doublecheck.cli import main
from doublecheck.client import preflight
from doublecheck.contracts.clauses import clauses
from doublecheck.reports.document import schema
from tests.doublecheck import bad_servers, other_servers

pytestmark = pytest.mark.once

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def doublecheck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run ``doublecheck`` in an empty folder, in this process."""

    def run(
        *words: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", ["doublecheck", *words])
            for name, value in {"COLUMNS": "120", **(environment or {})}.items():
                patch.setenv(name, value)
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
                main()
        code = ended.value.code
        assert isinstance(code, int | None)
        return subprocess.CompletedProcess(words, code or 0, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """Run ``doublecheck`` in a new process, after the code in ``before``."""

    def run(
        *words: str, environment: Mapping[str, str] | None = None, before: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", f"{before}\nfrom doublecheck.cli import main; main()", *words],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "120", **(environment or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.mark.slow
def test_passing_checks_exit_with_0(process: Command) -> None:
    """The report has the clauses by outcome, without colours in a pipe."""
    ended = process("run", "-k", "DEC-03")

    assert 0 == ended.returncode, ended.stderr
    assert [
        "passed  DEC-03",
        "",
        f"a temporary double: 1 passed. {len(clauses()) - 1} of {len(clauses())} clauses were not checked.",
    ] == [_untimed(line) for line in ended.stdout.strip().splitlines()]


def _untimed(line: str) -> str:
    return re.sub(r" \d+ checks?( of up to |, ).*", "", line.rstrip())


@pytest.mark.slow
def test_a_failed_check_exits_with_1(doublecheck: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has the cause; with --verbose stderr has the details and the table one line."""
    monkeypatch.setattr(simple.SimpleApp, "async_task", lambda _self, function: function)

    brief = doublecheck("run", "-k", "DEC-02 or DEC-03")
    ended = doublecheck("run", "-k", "DEC-02 or DEC-03", "-v")

    assert 1 == brief.returncode == ended.returncode
    assert "failed: DID NOT RAISE" in brief.stdout
    assert "passed  DEC-02" in brief.stdout
    assert "specification, section" not in brief.stderr
    assert "DEC-03  must   failed   async_task is planned and not implemented" in ended.stdout
    assert "DEC-03 (must): async_task is planned and not implemented, and says so." in ended.stderr
    assert "a temporary double: 1 failed, 1 passed." in ended.stdout


@pytest.mark.slow
def test_the_current_folder_is_ignored(process: Command, tmp_path: Path) -> None:
    """So are pytest's variables in the environment."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('the conftest was loaded')\n")
    (tmp_path / "hostile.py").write_text("raise RuntimeError('the plugin was loaded')\n")
    hostile = {"PYTEST_ADDOPTS": "--no-such-option", "PYTEST_PLUGINS": "hostile"}

    ended = process("run", "-k", "DEC-01", environment=hostile)

    assert 0 == ended.returncode, ended.stderr
    assert ["conftest.py", "hostile.py", "pytest.ini"] == sorted(
        path.name for path in tmp_path.iterdir()
    )


def test_json_output_is_one_document(doublecheck: Command) -> None:
    """The output of pytest is on stderr."""
    ended = doublecheck("run", "-k", "DEC-03", "--json")

    document = json.loads(ended.stdout)
    jsonschema.validate(document, schema())
    (clause,) = document["clauses"]
    names = [check["name"] for check in clause["checks"]]
    assert {"name": "double", "kind": "double", "url": None} == document["target"]
    assert ("DEC-03", "must", "passed") == (clause["id"], clause["level"], clause["verdict"])
    assert {"test_decorators.py"} == {name.partition("::")[0] for name in names}
    assert ({"passed": 1}, len(names)) == (document["summary"], document["chosen"])


@pytest.mark.slow
def test_several_targets_share_one_table(
    doublecheck: Command, platform_server: Target, tmp_path: Path
) -> None:
    """The exit code is the worst."""
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.doublecheck.targets.other]\nkind = "double"\nurl = "{platform_server.url}"\n'
    )
    words = ("--target", "double", "--target", "other")

    ended = doublecheck("run", *words, "-k", "INV-01 or CTL-04")

    lines = [line.split() for line in ended.stdout.strip().splitlines()]
    assert 3 == ended.returncode, ended.stderr
    assert ["clause", "level", "double", "other"] == lines[0]
    assert ["CTL-04", "should", "passed", "could"] == lines[1][:4]
    assert ["INV-01", "must", "passed", "not", "observable"] in [line[:5] for line in lines]


@pytest.mark.slow
def test_a_run_is_written_as_html(doublecheck: Command, tmp_path: Path) -> None:
    """An unwritable file is refused before the run."""
    ended = doublecheck("run", "--only", "DEC-03", "--html", "told.html")

    assert 0 == ended.returncode, ended.stderr
    assert ["told.html"] == sorted(path.name for path in tmp_path.iterdir())

    refused = doublecheck("run", "-k", "DEC-03", "--html", "told.html/told.html")

    message = "doublecheck: The report cannot be written to told.html/told.html: Not a directory."
    assert (2, "", [message]) == (refused.returncode, refused.stdout, refused.stderr.splitlines())


@pytest.mark.slow
def test_an_interrupted_run_writes_a_partial_report(process: Command, tmp_path: Path) -> None:
    interrupt = (
        "import os, signal\n"
        "from agentdouble.apps import simple\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in the background
        "simple.SimpleApp.async_task = lambda *_: os.kill(os.getpid(), signal.SIGINT)"
    )
    ended = process("run", "-k", "DEC-02 or DEC-03", "--html", "told.html", before=interrupt)

    message = "Interrupted: 2 of 3 checks ran. The others were not checked."
    assert (130, message) == (ended.returncode, ended.stdout.splitlines()[-1]), ended.stderr
    assert message in (tmp_path / "told.html").read_text("utf-8")


@pytest.mark.slow
def test_a_running_double_is_checked(doublecheck: Command, platform_server: Target) -> None:
    """Its keys come from the environment."""
    ended = doublecheck(
        "run",
        *("--url", platform_server.url, "-k", "CTL-04 or INV-01"),
        environment=platform_server.environment(),
    )

    assert 0 == ended.returncode, ended.stderr
    assert "not observable: needs the reference application" in ended.stdout
    assert f"double at {platform_server.url}: 1 passed, 1 not observable." in ended.stdout


def test_refused_keys_are_reported_before_the_first_check(
    doublecheck: Command, platform_server: Target, tmp_path: Path
) -> None:
    """Otherwise checks of refusals would pass. The error names the variables."""
    (tmp_path / "pyproject.toml").write_text(
        f"""
        [tool.doublecheck.targets.staging]
        url = "{platform_server.url}"
        access_key_env = "STAGING_ACCESS_KEY"
        secret_key_env = "STAGING_SECRET_KEY"
        """
    )
    access_key = platform_server.address().credentials.access_key
    keys = {"STAGING_ACCESS_KEY": access_key, "STAGING_SECRET_KEY": "a-wrong-secret"}

    refused = doublecheck("run", "--target", "staging", "-k", "CTL", environment=keys)

    assert (3, "") == (refused.returncode, refused.stdout)
    (line,) = refused.stderr.splitlines()
    assert line.startswith(
        f"doublecheck: The control plane at {platform_server.url} refuses the key pair in "
        "STAGING_ACCESS_KEY and STAGING_SECRET_KEY. Nothing was checked. Correct the two variables"
    )
    assert ". The refusal: SignatureDoesNotMatch: " in line
    assert "a-wrong-secret" not in line


COMMANDS = [["run", "-k", "PRB"], ["twin"], ["calibrate", "-o", "profile.toml"]]


def keyed_target(platform: Platform, folder: Path, **changes: str) -> dict[str, str]:
    """Define the target staging, which requires every kind of key; return their variables."""
    target = platform.target
    assert target.credentials is not None
    table = {
        "url": target.url,
        "tool_id": str(target.tool_id),
        "access_key_env": "STAGING_ACCESS_KEY",
        "secret_key_env": "STAGING_SECRET_KEY",
        "api_key_env": "STAGING_API_KEY",
        **changes,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if value]
    (folder / "pyproject.toml").write_text(
        "\n".join(
            [
                "[tool.doublecheck.targets.staging]",
                'offers = ["application", "control_plane", "sandbox"]',
                *lines,
            ]
        )
    )
    return {
        "STAGING_ACCESS_KEY": target.credentials.access_key,
        "STAGING_SECRET_KEY": target.credentials.secret_key,
        "STAGING_API_KEY": "the-key",
    }


@pytest.fixture
def keyed(make_platform: Callable[..., Platform]) -> Platform:
    return make_platform(api_key="the-key")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("changes", "variables", "message"),
    [
        ({}, {"STAGING_API_KEY": "another"}, "refuses the API key in STAGING_API_KEY: GET /ping"),
        ({"api_key_env": ""}, {}, "requires an API key: GET /ping answers HTTP 401. Nothing was"),
        ({}, {"STAGING_SECRET_KEY": "another"}, "refuses the key pair in STAGING_ACCESS_KEY and"),
        ({"tool_id": "t-nobody"}, {}, "does not have the tool 't-nobody': InvalidResource.NotFoun"),
    ],
    ids=["wrong API key", "no API key", "wrong key pair", "wrong tool"],
)
def test_what_a_target_refuses_is_reported_before_the_first_check(
    doublecheck: Command,
    keyed: Platform,
    tmp_path: Path,
    command: list[str],
    changes: dict[str, str],
    variables: dict[str, str],
    message: str,
) -> None:
    """Otherwise it would be compared, and its refusals would be taken for its behaviour."""
    keys = keyed_target(keyed, tmp_path, **changes)

    refused = doublecheck(*command, "--target", "staging", environment={**keys, **variables})

    assert (3, "") == (refused.returncode, refused.stdout)
    (line,) = refused.stderr.splitlines()
    assert message in line
    assert "Nothing was checked." in line
    assert not (tmp_path / "profile.toml").exists()


def test_a_target_with_the_correct_keys_is_checked(
    doublecheck: Command, keyed: Platform, tmp_path: Path
) -> None:
    keys = keyed_target(keyed, tmp_path)

    ended = doublecheck("run", "--target", "staging", "-k", "PRB-02", environment=keys)

    assert 0 == ended.returncode, ended.stderr


def test_a_running_double_without_its_api_key_is_reported_before_the_first_check(
    doublecheck: Command, keyed: Platform
) -> None:
    refused = doublecheck("run", "--url", keyed.url, "-k", "PRB")

    assert (3, "") == (refused.returncode, refused.stdout)
    assert "requires an API key" in refused.stderr
    assert "Set DOUBLECHECK_API_KEY" in refused.stderr


def test_another_server_does_not_refuse_the_key_pair(
    doublecheck: Command, keyed: Platform, tmp_path: Path
) -> None:
    """Its 401 is about something else: here, the address has a path that it does not serve."""
    keys = keyed_target(keyed, tmp_path, url=f"{keyed.url}/agent")

    ended = doublecheck("run", "--target", "staging", "-k", "PRB-02 or CTL-04", environment=keys)

    assert 3 == ended.returncode
    assert "key pair in" not in ended.stdout + ended.stderr
    assert "Is this the address of the control plane, and is the key pair right?" in ended.stdout
    assert f"No check could ask {keyed.url}/agent: is it the platform's address" in ended.stdout


def test_all_missing_variables_of_a_target_are_named_at_once(
    doublecheck: Command, keyed: Platform, tmp_path: Path
) -> None:
    keyed_target(keyed, tmp_path)

    refused = doublecheck("run", "--target", "staging")

    assert 2 == refused.returncode
    assert (
        "access_key_env names the environment variable STAGING_ACCESS_KEY, which is not set. Nor are "
        "these, which it needs too: STAGING_API_KEY, STAGING_SECRET_KEY."
    ) in refused.stderr


def test_an_unknown_target_names_the_file_that_was_read(
    doublecheck: Command, tmp_path: Path
) -> None:
    """Outside the project's folder there is none."""
    nowhere = doublecheck("run", "--target", "staging")
    (tmp_path / "pyproject.toml").write_text("")
    here = doublecheck("run", "--target", "staging")

    assert "a pyproject.toml, of which there is none here" in nowhere.stderr
    assert f"add a table to {tmp_path / 'pyproject.toml'}" in here.stderr


def test_a_target_of_the_project_is_checked(
    doublecheck: Command, platform_server: Target, tmp_path: Path
) -> None:
    """Undeclared surfaces are not offered."""
    (tmp_path / "pyproject.toml").write_text(
        f"""
        [tool.doublecheck.targets.staging]
        url = "{platform_server.url}"
        offers = ["application"]
        """
    )

    ended = doublecheck("run", "--target", "staging", "-v", "-k", "PRB-02 or API-01")

    assert 0 == ended.returncode, ended.stderr
    assert f"platform: staging, live, at {platform_server.url} ({tmp_path}/pyp" in ended.stderr
    assert "not offered: staging does not declare api_server" in ended.stdout
    assert f"staging, live at {platform_server.url}: 1 passed, 1 not offered." in ended.stdout


@pytest.mark.parametrize(
    ("behave", "message"),
    [
        (bad_servers.hang, "accepted the request but did not finish its answer"),
        (bad_servers.answer(b"<html>", "text/html"), "answers with a web page"),
        (
            bad_servers.answer(b"", status="302 Found", more="Location: http://a/login\r\n"),
            "redirects to http://a/login",
        ),
    ],
    ids=["hangs", "page", "redirects"],
)
def test_an_unusable_target_is_reported_before_the_first_check(
    doublecheck: Command,
    monkeypatch: pytest.MonkeyPatch,
    behave: bad_servers.Behaviour,
    message: str,
) -> None:
    monkeypatch.setattr(preflight, "PATIENCE_S", 0.3)
    with bad_servers.serving(behave) as server:
        ended = doublecheck("run", "--target", "live", "--url", server.url)

    assert (3, "") == (ended.returncode, ended.stdout)
    assert ended.stderr.startswith(f"doublecheck: {server.url}/")
    assert message in ended.stderr


def test_a_run_without_a_verdict_is_not_a_success(
    doublecheck: Command, platform_server: Target
) -> None:
    ended = doublecheck("run", "--url", platform_server.url, "--offers", "mcp", "-k", "PRB-01")

    assert 5 == ended.returncode
    assert f"double at {platform_server.url}: 1 not offered." in ended.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--url", "http://127.0.0.1:1"], 3, "Nothing answers at http://127.0.0.1:1"),
        (["--url", "foo"], 2, "--url must be an address: http://host[:port] or https://host, not"),
        (["--target", "stagin"], 2, "Unknown target 'stagin'"),
        (["--target", "live"], 2, "--target live needs a running platform"),
        (["-k", "NOBODY"], 2, "No check matches --only 'NOBODY'"),
        (["--offers", "nothing"], 2, "--offers must be surfaces among a2a, api_server"),
        (
            ["--level", "smoke", "--strict-should"],
            2,
            "--level smoke skips most recommendations",
        ),
    ],
)
def test_usage_errors_are_one_line(
    doublecheck: Command, words: list[str], code: int, message: str
) -> None:
    """The line has the remedy."""
    ended = doublecheck("run", *words)

    assert (code, "") == (ended.returncode, ended.stdout)
    assert ended.stderr.splitlines()[-1].startswith(f"doublecheck: {message}")


@pytest.mark.parametrize(
    ("absent", "message"),
    [
        ("starlette", "pip install 'agentdouble[emulator]'"),
        ("pytest", "pip install 'pytest'"),
    ],
)
def test_missing_packages_are_named_with_the_pip_command(
    process: Command, absent: str, message: str
) -> None:
    hide = (
        "import sys, importlib.util\n"
        "find = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name: None if name == {absent!r} else find(name)\n"
        f"sys.modules[{absent!r}] = None"
    )
    ended = process("run", before=hide)

    assert (3, "") == (ended.returncode, ended.stdout)
    assert 1 == len(ended.stderr.splitlines()), ended.stderr
    assert ended.stderr.rstrip().endswith(f"Install it: {message}")


def test_help_has_examples_and_exit_codes(doublecheck: Command) -> None:
    help_text = doublecheck("run", "--help").stdout

    for line in (
        "doublecheck run --url http://127.0.0.1:8000",
        'doublecheck run --only "INV or PRB"',
        "  0    something passed, and nothing failed\n",
        "  5    nothing was checked\n",
    ):
        assert line in help_text


def test_version(doublecheck: Command) -> None:
    from agentdouble import __version__

    assert f"doublecheck {__version__}\n" == doublecheck("--version").stdout


@pytest.mark.parametrize(
    ("level", "surface", "group"), [("quick", "a2a", "A2A"), ("smoke", "runtimes", "HST")]
)
def test_a_declared_surface_that_the_level_leaves_out_is_named(
    doublecheck: Command, level: str, surface: str, group: str
) -> None:
    """The default level leaves none out, and other surfaces are not named."""
    declared = ("--target", "live", "--offers", f"application,{surface}")
    declared += ("--only", f"PRB-01 or {group}")
    with other_servers.serving(other_servers.APPLICATION) as server:
        ended = doublecheck("run", "--url", server.url, *declared, "--level", level)
        full = doublecheck("run", "--url", server.url, *declared, "--json")
        nothing = doublecheck(
            *("run", "--url", server.url, "--target", "live", "--offers", surface),
            *("--only", group, "--level", level),
        )

    note = f"Not checked at level {level}: {surface}; use --level full."
    assert (0, note) == (ended.returncode, ended.stdout.strip().splitlines()[-1])
    assert [] == json.loads(full.stdout)["left_out"]
    assert 2 == nothing.returncode
    assert f"at level {level}, which leaves out {surface}" in nothing.stderr


def test_with_a_baseline_only_new_failures_fail(doublecheck: Command, tmp_path: Path) -> None:
    """check() takes the file or a report. A bad file is wrong usage."""
    probes = {("GET", f"/{name}"): (200, "ok") for name in ("ping", "health", "readiness")}
    routes: dict[tuple[str, str], other_servers.Answer] = {
        **probes,
        ("POST", "/invoke"): (400, {"error": "not JSON"}),
    }
    words = ("run", "--target", "live", "--offers", "application", "--only", "PRB-03 or PRB-04")
    known = ("--baseline", "gaps.json")
    with other_servers.serving(lambda *request: other_servers.of(routes)(*request)) as server:
        words = (*words, "--url", server.url)
        first = doublecheck(*words, "--json")
        (tmp_path / "gaps.json").write_text(first.stdout)
        again = doublecheck(*words, *known)
        target = Target(server.url, kind="live", offered=frozenset({"application"}))
        with Platform(target) as platform:
            only = "PRB-03 or PRB-04"
            checked = check(platform, only=only, baseline=tmp_path / "gaps.json")
            same = check(platform, only=only, baseline=checked)
        del routes["GET", "/readiness"]
        worse = doublecheck(*words, *known)
        routes |= {("GET", f"/{name}"): (200, "ok") for name in ("readiness", "liveness")}
        repaired = doublecheck(*words, *known)
        bad = doublecheck(*words, "--baseline", "absent.json")

    codes = [ended.returncode for ended in (first, again, worse, repaired, bad)]
    assert [1, 0, 1, 0, 2] == codes, first.stdout
    assert "failed (known): " in again.stdout
    assert "\nfailed: " in worse.stdout
    assert "no longer fails  PRB-04" in repaired.stdout
    assert "absent.json cannot be read" in bad.stderr
    assert [((), 0)] * 2 == [(it.failed, it.exit_code) for it in (checked, same)]
