"""The first test, the installation and the containers: their examples, tables and settings."""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from packaging.requirements import Requirement
from typer.testing import CliRunner

from agentdouble import Emulator, Settings, __version__
from agentdouble.cli.app import app
from agentdouble.core import running_doubles
from agentdouble.processes.isolation import MEASURES
from agentdouble.settings import PREFIX
from tests import machine
from tests.readme.consoles import bash, commands_of, known_options, pytest_in, unknown
from tests.readme.pages import DOUBLE, HARNESS, ROOT, block, read

pytestmark = pytest.mark.once

INSTALL = "emulator/docs/install.md"
FIRST = {
    name: block(HARNESS, "python", f"# {name}")
    for name in ("test_first.py", "first_agent.py", "test_first_agent.py")
}
DOCKER = block(DOUBLE, "console", "$ docker build -t agentdouble")
IMAGE = block(DOUBLE, "dockerfile", "# double.Dockerfile")
IMAGE_BUILD = block(DOUBLE, "console", "$ docker build -t my-double")
TESTS_IMAGE = block(DOUBLE, "dockerfile", "# Dockerfile")
COMPOSE_UP = block(DOUBLE, "console", "$ docker compose up")
SECURITY = block(DOUBLE, "yaml", "    cap_add")
PINNED = block(DOUBLE, "console", "$ pip install 'agentdouble[emulator] @ git+https")
CHECKED_OUT = block(DOUBLE, "console", "$ git -C /path/to/agentdouble checkout")
HOSTS_TESTS = block(DOUBLE, "console", '$ eval "$(docker exec double agentdouble env)"')
COMPOSE = block(DOUBLE, "yaml", "# compose.yaml")
DEVCONTAINER = block(DOUBLE, "json", '{\n  "image"')
OURS = {"test", "docs", "dev", "lab"}  # extras for those who change agentdouble


@pytest.mark.slow
def test_first_tests_pass(tmp_path: Path) -> None:
    """Without any other file."""
    for name, text in FIRST.items():
        (tmp_path / name).write_text(text)

    assert "4 passed" in pytest_in(tmp_path)


def test_table_has_every_python_and_extra() -> None:
    """A new version of Python, or a new extra, has its row."""
    page = read(INSTALL)
    known = metadata("agentdouble")
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(known.get_all("Classifier") or ()))

    assert classified == re.findall(r"^\| (3\.\d+) \| \d{4}-10 \|", page, re.M)
    assert {*(known.get_all("Provides-Extra") or ())} - OURS == set(
        re.findall(r"^\| `(\w+)` \|", page, re.M)
    )


def test_table_names_what_ci_runs() -> None:
    """The workflow installs each Python whose row does not say that it is not run."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text("utf-8"))
    (versions,) = (
        step["with"]["python-version"]
        for step in workflow["jobs"]["checks"]["steps"]
        if "python-version" in step.get("with", {})
    )
    rows = re.findall(r"^\| (3\.\d+) \| \S+ \| (.*) \|$", read(INSTALL), re.M)

    assert set(versions.split()) == {name for name, said in rows if not said.startswith("not run")}


def test_pinned_version_is_this_one() -> None:
    """As a requirement, with both kinds of address, and as a checkout."""
    named = re.findall(r"agentdouble@([\w.]+)['`]", read(INSTALL))
    (requirement,) = commands_of(PINNED)
    checkout, install = commands_of(CHECKED_OUT)

    assert [f"v{__version__}"] * 2 == named
    assert named[0] == checkout.words[-1]
    assert {"emulator"} == Requirement(requirement.words[-1]).extras
    assert f"{checkout.words[2]}[emulator]" == install.words[-1]


def test_container_starts_a_double(pytestconfig: pytest.Config) -> None:
    """The image's entry point, and the command that runs inside, have the options they use."""
    file = (ROOT / "emulator/Containerfile").read_text("utf-8")
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", file, re.M)
    build, ran, _, inside = (shlex.split(command.command) for command in commands_of(DOCKER))
    options = known_options(pytestconfig)

    started = CliRunner().invoke(app, [*json.loads(entry)[1:], "--help"])

    assert 0 == started.exit_code
    assert [] == unknown(re.findall(r"agentdouble env", inside[1])[0].split(), options)
    assert (ROOT / build[build.index("-f") + 1]).is_file()
    assert f"{PREFIX}API_KEY=secret" in ran
    assert {"-d", f"127.0.0.1:{Settings().port}:{Settings().port}"} <= {*ran}


def test_curl_waits_for_the_double_of_a_container(tmp_path: Path) -> None:
    """Its health needs no key."""
    machine.require("curl")
    _, _, waiting, _ = commands_of(DOCKER)
    with Emulator(api_key="secret") as double:
        command = waiting.command.replace("http://127.0.0.1:8000", double.url)

        assert "status" in json.loads(bash(command, tmp_path))


def test_image_of_an_application_ends_as_the_user_of_the_double() -> None:
    """It begins with the image of the first block, and installs as root."""
    file = (ROOT / "emulator/Containerfile").read_text("utf-8")
    build, *_ = commands_of(DOCKER)
    (its_build,) = commands_of(IMAGE_BUILD)
    tag = build.words[build.words.index("-t") + 1]

    assert [tag] == re.findall(r"^FROM (.*)$", IMAGE, re.M)
    assert ["root", *re.findall(r"^USER (.*)$", file, re.M)] == re.findall(
        r"^USER (.*)$", IMAGE, re.M
    )
    assert f"# {its_build.words[its_build.words.index('-f') + 1]}" == IMAGE.splitlines()[0]


def test_remedy_of_the_doctor_is_that_of_compose() -> None:
    """In the words of a command line, and as the keys of a service."""
    described = yaml.safe_load(SECURITY)
    words = (
        f"--cap-add {described['cap_add'][0]} --security-opt {described['security_opt'][0]}",
        "--cap-add SYS_ADMIN --security-opt apparmor=unconfined",
    )
    page = " ".join(read("emulator/docs/containers.md").split())

    assert [] == [word for word in words if word not in MEASURES["files"][1] or word not in page]


@pytest.fixture
def services() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE)["services"])


@pytest.fixture
def in_compose(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The settings of the double of the compose file, with a port that is free."""
    for name, value in services["double"]["environment"].items():
        monkeypatch.setenv(name, value)
    return Settings.load(host="0.0.0.0", port=0)


def test_images_of_compose_have_their_files(services: dict[str, Any]) -> None:
    """The tests' image copies from the context that compose.yaml names; the report is mounted."""
    tests, double = services["tests"], services["double"]
    (command,) = commands_of(COMPOSE_UP)
    (report,) = re.findall(r"--junit-xml=(\S+)", tests["command"])
    (_, mounted) = tests["volumes"][0].split(":")

    assert [*tests["build"]["additional_contexts"]] == re.findall(r"--from=(\S+)", TESTS_IMAGE)
    assert {*tests["build"]["additional_contexts"].values()} == {double["build"]["context"]}
    assert mounted == str(Path(report).parent)
    assert command.words[-1] in services
    assert (ROOT / double["build"]["dockerfile"]).is_file()


def test_image_ignores_no_source() -> None:
    """What the image does not get is what git does not keep, either."""
    docker, git = (
        {line.removeprefix("**/").rstrip("/") for line in (ROOT / name).read_text().splitlines()}
        for name in (".dockerignore", ".gitignore")
    )

    assert {".git"} == {line for line in docker if not line.startswith("#")} - git


def test_double_of_compose_has_its_name(in_compose: Settings) -> None:
    """Other containers reach it by the name of its service, and by no other name."""
    with Emulator(settings=in_compose) as double:
        statuses = [
            httpx.get(f"{double.url}/ping", headers={**KEY, "Host": host}).status_code
            for host in ("double:8000", "127.0.0.1:8000", "172.18.0.2:8000", "other:8000")
        ]
        checked = httpx.get(f"{double.url}/_emulator/health").status_code

    assert ([200, 200, 200, 403], 200) == (statuses, checked)


KEY = {"Authorization": "Bearer an-api-key"}


@pytest.mark.slow
def test_tests_of_compose_use_its_double(
    services: dict[str, Any], in_compose: Settings, tmp_path: Path
) -> None:
    """The fixtures and run_code have what they need; only the address differs."""
    (tmp_path / "test_both.py").write_text(
        "import agentdouble\n\n"
        "def test_both(platform, platform_clock):\n"
        "    assert platform.invoke('6 * 7', session_id='s') == '42'\n"
        "    assert '42' in agentdouble.run_code('6 * 7')\n"
        "    assert platform.unknowns()\n"
    )
    with Emulator(settings=in_compose) as double:
        host = double.url.removeprefix("http://")
        variables = {
            name: value.replace("double:8000", host)
            for name, value in services["tests"]["environment"].items()
        }
        output = bash("pytest -q -p no:cacheprovider -n0", tmp_path, **variables)

    assert "1 passed" in output


def test_tests_of_the_host_use_the_double_of_a_container(tmp_path: Path) -> None:
    """It is not theirs: they know it by the variables of the block, and by those from inside."""
    (tmp_path / "test_it.py").write_text(
        "def test_it(platform, platform_clock):\n"
        "    assert platform.invoke('6 * 7') == '42'\n"
        "    assert platform.run_code('6 * 7').text == '42'\n"
    )
    _, shown = commands_of(HOSTS_TESTS)
    with Emulator(api_key="secret", access_key="AKLTinside", secret_key="its-secret") as double:
        variables = {**double.environment(), "XDG_STATE_HOME": str(tmp_path)}
        here = shown.command.replace("http://127.0.0.1:8000", double.url)
        output = bash(f"{here} -q -p no:cacheprovider -n0", tmp_path, **variables)

    assert "1 passed" in output


def test_env_reaches_a_double_of_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside it needs nothing; outside it has the address and the variables from inside."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "inside"))
    with Emulator() as double, running_doubles.announced(double.connection):
        printed = CliRunner().invoke(app, ["env", "--json"])
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "outside"))
        refused = CliRunner().invoke(app, ["env", "--url", double.url])
        for name, value in json.loads(printed.stdout).items():
            monkeypatch.setenv(name, value)
        outside = CliRunner().invoke(app, ["env", "--url", double.url, "--json"])

    assert json.loads(printed.stdout) == json.loads(outside.stdout)
    assert refused.exit_code


def test_devcontainer_forwards_double_and_console() -> None:
    (console,) = re.findall(r"--console-port (\d+)", read("emulator/docs/containers.md"))
    described = json.loads(DEVCONTAINER)

    assert [Settings().port, int(console)] == described["forwardPorts"]
    assert described["postCreateCommand"].endswith(" && agentdouble doctor")
