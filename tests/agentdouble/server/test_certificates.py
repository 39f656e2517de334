from __future__ import annotations

import ssl
import stat
import sys
from pathlib import Path

import httpx
import pytest

from agentdouble import Emulator, run_code
from agentdouble.cli import main
from agentdouble.errors import PlatformUnreachableError, SettingsError
from tests.agentdouble.calling import TIMEOUT_S, run


def trusting(bundle: Path) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(bundle))
    return httpx.Client(verify=context, trust_env=False, timeout=TIMEOUT_S)


def test_https_works_for_clients_that_trust_the_bundle() -> None:
    """CTL-08: the certificate covers every local name, and the file is removed afterwards."""
    with Emulator(tls=True) as double:
        bundle, port = double.ca_file, double.url.rpartition(":")[2]
        assert bundle is not None
        with trusting(bundle) as client:
            names = [f"https://{name}:{port}/ping" for name in ("127.0.0.1", "localhost")]
            answers = [client.get(url).status_code for url in names]

    assert ([200, 200], False) == (answers, bundle.parent.exists())
    assert double.url.startswith("https://127.0.0.1:")


def test_a_client_without_the_bundle_rejects_the_double() -> None:
    with Emulator(tls=True) as double, pytest.raises(httpx.ConnectError, match="CERTIFICATE"):
        httpx.get(double.url, trust_env=False, timeout=TIMEOUT_S)


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_clients_here_reject_it_without_the_bundle(
    scheme: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent-side tool and the command, however the scheme is written."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with Emulator(tls=True) as double:
        for name, value in double.environment().items():
            if not name.startswith(("SSL_", "REQUESTS_")):
                monkeypatch.setenv(name, value)
        monkeypatch.setenv("PLATFORM_TOOL_SCHEME", scheme)

        with pytest.raises(PlatformUnreachableError, match="CERTIFICATE"):
            run_code("1")
        url = double.url.replace("https", scheme)
        monkeypatch.setattr(sys, "argv", ["agentdouble", "mcp", "list", "--url", url])
        with pytest.raises(SystemExit):
            main()

    assert "CERTIFICATE" in capsys.readouterr().err


def test_run_code_finds_the_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed variables are enough for the agent-side tool."""
    with Emulator(tls=True) as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)

        assert '"text": "42\\n"' in run_code("print(6 * 7)")


@pytest.mark.slow
def test_an_authority_survives_a_restart(tmp_path: Path) -> None:
    """Clients keep trusting it, and its key is private."""
    directory = tmp_path / "tls"
    with Emulator(tls=True, tls_directory=directory) as first:
        assert first.ca_file is not None
        trusted = first.ca_file.read_bytes()
    with Emulator(tls=True, tls_directory=directory) as second:
        assert trusted == (directory / "ca-bundle.pem").read_bytes()
        assert "42" == run_over_https(second)

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}
    assert {"ca.pem": 0o600, "ca-bundle.pem": 0o644} == modes


def run_over_https(double: Emulator) -> str:
    outputs = run(double, "6 * 7")["data"]["outputs"]
    return str(outputs[0]["data"]["text/plain"])


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"allow_hosts": ("a" * 64,)}, "allow_hosts"), ({"tls_directory": "file/x"}, "tls_directory")],
)
def test_an_invalid_certificate_name_is_refused(
    settings: dict[str, object],
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names the setting, and no socket or file remains."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()

    with pytest.raises(SettingsError) as caught:
        Emulator(tls=True, **settings)

    assert key == caught.value.key
