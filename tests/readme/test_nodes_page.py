from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys

import pytest
import yaml
from packaging.requirements import Requirement
from typer.testing import CliRunner

from agentdouble.cli.app import app
from agentdouble.settings import PREFIX, Settings
from tests.readme.pages import block

PAGE = "emulator/docs/nodes.md"
START = block(PAGE, "sh", "pip install")
SLURM = block(PAGE, "bash", "#!/bin/bash")
KUBERAY = block(PAGE, "yaml", "apiVersion: ray.io/v1")


def test_the_extras_are_named_as_they_are() -> None:
    (name,) = [word for word in shlex.split(START) if word.startswith("agentdouble")]

    assert {"emulator", "ray"} == Requirement(name).extras


def test_ray_knows_the_options_of_its_commands() -> None:
    """Those of bare machines and of the Slurm script."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    script = (
        "from ray.scripts.scripts import start; print(*(o for p in start.params for o in p.opts))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    commands = re.findall(r"ray start (.+?)(?: &)?$", START + SLURM, re.M)
    options = {word for command in commands for word in command.split() if word.startswith("--")}

    assert {"--head", "--port", "--address", "--block"} == options
    assert options <= set(printed.stdout.split())


def test_the_slurm_script_starts_a_head_the_nodes_and_the_front() -> None:
    """With srun replaced by a function that prints what it would run where, and with what."""
    replaced = (
        'ray() { echo; }\nscontrol() { printf "a\\nb\\n"; }\n'
        'srun() { echo "$* $RAY_AUTH_MODE" >> out; }\nsleep() { wait; }\n'
    )
    code = f"SLURM_JOB_NODELIST=ab; cd $(mktemp -d)\n{replaced}\n{SLURM}\nwait\nsort out\n"
    ran = subprocess.run(["bash", "-euc", code], check=True, capture_output=True, text=True)
    machines, commands = zip(
        *(re.findall(r"(-[wx] \w) (.*)", line)[0] for line in ran.stdout.splitlines()), strict=True
    )

    assert ["-w a", "-w a", "-x a"] == sorted(machines)
    assert {
        "agentdouble serve --nodes ray://a:6379 token",
        "ray start --address a:6379 --block token",
        "ray start --head --port 6379 --block token",
    } == set(commands)


def test_the_manifest_has_a_front_whose_settings_are_valid() -> None:
    spec = yaml.safe_load(KUBERAY)["spec"]
    (_, front) = spec["headGroupSpec"]["template"]["spec"]["containers"]
    values = {item["name"]: item.get("value", "key") for item in front["env"]}
    (token,) = [item["valueFrom"] for item in front["env"] if item["name"] == "RAY_AUTH_TOKEN"]
    settings = {n.removeprefix(PREFIX).lower(): v for n, v in values.items() if PREFIX in n}
    command, *arguments = front["command"]
    printed = CliRunner().invoke(app, [*arguments, "--help"])

    assert ("agentdouble", 0) == (command, printed.exit_code)
    assert spec["authOptions"]["mode"] == values["RAY_AUTH_MODE"] == "token"
    assert {"name": "sandboxes", "key": "auth_token"} == token["secretKeyRef"]  # as KubeRay says
    assert "ray://127.0.0.1:6379" == Settings.load(**settings).nodes
