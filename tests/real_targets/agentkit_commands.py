"""Every command of agentkit's command line, against a double: what works, and what is refused.

``python -m tests.real_targets.agentkit_commands`` prints the table, with the interpreter of
``DOUBLECHECK_AGENTKIT_PYTHON``, in a minute and a half. A command that asks nothing of the platform, or that the command
line itself ends before it asks, is listed with the reason; one that is listed nowhere is an error.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentdouble import Emulator

VARIABLE = "DOUBLECHECK_AGENTKIT_PYTHON"
REFUSED = re.compile(r"([^.\"│:]+) is part of the platform, but this version of agentdouble")
APPLICATIONS = Path(__file__).parents[1] / "agentdouble" / "runtimes" / "applications"
NAMES = """
import click, typer
from agentkit.toolkit.cli.cli import app

def names(command, path):
    inner = getattr(command, "commands", None)
    if inner is None:
        print(path)
    for name in sorted(inner or ()):
        names(inner[name], f"{path} {name}".strip())

names(typer.main.get_command(app), "")
"""
# ``{tool}``, ``{session}`` and ``{runtime}`` are ids that an earlier command has printed.
WORKS = (
    "tools create --name made --tool-type CodeEnv",
    "tools list",
    "tools show --tool-id {tool}",
    "tools update --tool-id {tool} --description changed",
    "tools session create --tool-id {tool} --name one",
    "tools session list --tool-id {tool}",
    "tools session show --tool-id {tool} --session-id {session}",
    "tools session set-ttl --tool-id {tool} --session-id {session} --ttl 600",
    "tools session logs --tool-id {tool} --session-id {session}",
    "tools session delete --tool-id {tool} --session-id {session} --force",
    "sandbox shell --tool-id {tool} --session-id two --command true",
    "sandbox exec --tool-id {tool} --session-id two --command exit",  # else its terminal stays
    "sandbox scp --tool-id {tool} --session-id two auth.json sandbox:/home/gem/auth.json",
    "sandbox model-login --tool-id {tool} --session-id two --auth-file auth.json",
    "sandbox codex-login --tool-id {tool} --session-id two --auth-file auth.json",
    "sandbox list",
    "sandbox delete --tool-id {tool} --session-id two --force",
    "sandbox create --tool-name mine",
    "skills bind --tool-id {tool} --space-id any",
    "tools delete --tool-id {tool} --force",
    (
        "runtime create --name mine --role-name any --apikey-name any --artifact-type file "
        "--artifact-url {artifact}"
    ),
    "runtime list",
    "runtime get --runtime-id {runtime}",
    "runtime update --runtime-id {runtime} --description changed",
    "runtime release --runtime-id {runtime}",
    "runtime versions --runtime-id {runtime}",
    "runtime version --runtime-id {runtime} --version-number 1",
    "runtime delete --runtime-id {runtime} --force",
    "list harness",
)
# What is refused by name.
NOT_BUILT = (
    "add credential --type api-key --name any --api-key any",
    "delete credential any",
    "knowledge add --provider-knowledge-id any --provider-type VIKINGDB_KNOWLEDGE --name any",
    "knowledge conn --knowledge-id any",
    "knowledge delete --knowledge-id any --force",
    "knowledge list",
    "knowledge show --knowledge-id any",
    "knowledge update --knowledge-id any --description any",
    "list credentials",
    "memory add --provider-collection-id any --provider-type MEM0 --name any",
    "memory conn --memory-id any",
    "memory create --name any --strategy SEMANTIC:any",
    "memory delete --memory-id any --force",
    "memory list",
    "memory show --memory-id any",
    "memory update --memory-id any --description any",
    "model-gateway activate",
    "model-gateway consumer add --name any --allow-model any",
    "model-gateway consumer delete --name any",
    "model-gateway consumer list",
    "model-gateway consumer show --name any",
    "model-gateway consumer update --name any --tpm 1",
    "model-gateway provider add --name any --base-url http://any --api-key any --model any",
    "model-gateway provider delete --name any",
    "model-gateway provider list",
    "model-gateway provider show --name any",
    "model-gateway provider update --name any --model any",
    "model-gateway show-example --provider any --consumer any",
    "sandbox invoke --tool-id t-sandbox --session-id three --prompt hello",
    "skill install any --skill-space any",
    "skill list",
    "skill uninstall any --skill-space any --force",
    "skills create --tos-url tos://any/any.zip",
    "skills delete --skill-id any --force",
    "skills info --skill-name any --space-id any",
    "skills list",
    "skills show --skill-id any",
    "skills space create --name any",
    "skills space delete --space-id any --force",
    "skills space list",
    "skills space publish --space-id any --skill-id any --version v1",
    "skills space remove --space-id any --skill-id any --force",
    "skills space show --space-id any",
    "skills space skills --space-id any",
    "skills space skills-basic --space-id any",
    "skills space update --space-id any --name any",
    "skills spaces --skill-id any",
    "skills update --skill-id any --tos-url tos://any/any.zip",
    "skills version --skill-id any",
    "skills versions --skill-id any",
)
# Why the other commands ask no double.
ELSEWHERE: Mapping[str, str] = {
    "add harness": "writes a file",
    "auth admin": "asks for accounts over https alone (IAM, STS, object storage)",
    "auth login": "opens a browser at a company's own login",
    "auth logout": "forgets a login",
    "auth profile": "reads and writes files",
    "auth whoami": "reads a file",
    "build": "builds a container image",
    "config": "reads and writes files",
    "credential-hosting": "asks for accounts over https alone (IAM)",
    "delete harness": "deletes a runtime that was deployed as a container image",
    "deploy": "deploys a container image",
    "destroy": "ends what was deployed as a container image",
    "init": "writes files",
    "invoke harness": "calls what was deployed as a container image",
    "invoke run": "calls what was deployed as a container image",
    "knowledge provider-types": "prints a list",
    "launch": "builds and deploys a container image",
    "list sessions": "calls what was deployed as a container image",
    "login": "opens a browser at a company's own login",
    "logout": "forgets a login",
    "logs": "asks the service of logs for what was deployed as a container image",
    "memory provider-types": "prints a list",
    "sandbox build": "builds a container image",
    "sandbox config": "reads and writes files",
    "sandbox init": "writes files",
    "sandbox mount": "needs object storage, which CreateTool refuses by name",
    "sandbox run": "builds a container image",
    "sandbox web": "opens a browser at /vnc, which is refused by name",
    "skills init": "writes files",
    "skills pack": "writes a file",
    "skills push": "asks object storage first",
    "skills upload": "asks object storage",
    "skills validate": "reads files",
    "status": "asks for what was deployed as a container image",
    "version": "prints a version",
    "whoami": "reads a file",
}
_IDS = {
    "tool": r"\bt-[0-9a-f]{20}\b",
    "session": r"\bs-[0-9a-f]{20}\b",
    "runtime": r"\br-[0-9a-f]+\b",
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command: ``works``, ``refused`` with the reason, or ``fails`` with output."""

    command: str
    kind: str
    output: str = ""


def names(python: str) -> list[str]:
    """Return the commands in the help of the command line."""
    return _run([python, "-W", "ignore", "-c", NAMES], Path(), os.environ).stdout.split("\n")[:-1]


def unlisted(commands: list[str]) -> list[str]:
    """Return the commands that this module does not list."""
    ran = [f"{command} " for command in (*WORKS, *NOT_BUILT)]
    rest = [cmd for cmd in commands if not any(run.startswith(f"{cmd} ") for run in ran)]
    return [cmd for cmd in rest if not any(f"{cmd} ".startswith(f"{part} ") for part in ELSEWHERE)]


def outcomes(python: str) -> Iterator[Outcome]:
    """Run all commands that call the platform, in order, against a double."""
    agentkit = str(Path(python).with_name("agentkit"))
    with (
        tempfile.TemporaryDirectory() as folder,
        Emulator(runtime_sources=(APPLICATIONS,)) as double,
    ):
        (Path(folder) / "auth.json").write_text('{"tokens": {"access_token": "a"}}')
        environ = {
            **os.environ,
            **double.environment("agentkit"),
            "HOME": folder,
            "COLUMNS": "400",
            "NO_COLOR": "1",
        }
        values = {"artifact": f"file://{APPLICATIONS}?command=python+saying.py"}
        for command in (*WORKS, *NOT_BUILT):
            words = [word.format_map(values) for word in command.split()]
            ended = _run([agentkit, *words], Path(folder), environ)
            output = ended.stdout + ended.stderr
            for name, id_ in _IDS.items():
                match = re.search(id_, output)
                if " create " in command and match:
                    values[name] = match[0]
            yield _outcome(command, ended.returncode, output)


def _outcome(command: str, code: int, output: str) -> Outcome:
    refused = REFUSED.search(" ".join(output.split()))
    if refused is not None:
        return Outcome(command, "refused", refused[1].strip())
    if code == 0:
        return Outcome(command, "works")
    return Outcome(command, "fails", output[-2000:])


def _run(
    words: list[str], folder: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def main() -> None:
    """Print the table."""
    python = os.environ.get(VARIABLE)
    if python is None:
        raise SystemExit(f"{VARIABLE}: a Python with pip install agentkit-sdk-python")
    for item in outcomes(python):
        print(f"{item.kind:8} {item.command}{item.output and f': {item.output}'}", flush=True)  # noqa: T201
    for name, reason in ELSEWHERE.items():
        print(f"{'-':8} {name}: {reason}")  # noqa: T201
    for name in unlisted(names(python)):
        sys.exit(f"{name}: nothing is known of it")


if __name__ == "__main__":
    main()
