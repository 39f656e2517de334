from __future__ import annotations

import socket
import ssl
import stat
from pathlib import Path

import httpx
import pytest

from agentdouble import Emulator, certificates, run_code
from agentdouble.errors import PlatformUnreachableError, SettingsError
from tests.agentdouble.calling import TIMEOUT_S, http, run


def trusting(bundle: Path) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(bundle))
    return httpx.Client(verify=context, trust_env=False, timeout=TIMEOUT_S)


def test_a_double_serves_https_to_whoever_trusts_its_bundle() -> None:
    """CTL-08: the certificate holds for every name of this machine, and the file goes with it."""
    with Emulator(tls=True) as double:
        bundle, port = double.ca_file, double.url.rpartition(":")[2]
        assert bundle is not None
        with trusting(bundle) as client:
            names = [f"https://{name}:{port}/ping" for name in ("127.0.0.1", "localhost")]
            answers = [client.get(url).status_code for url in names]

    assert ([200, 200], False) == (answers, bundle.parent.exists())
    assert double.url.startswith("https://127.0.0.1:")


def test_who_does_not_trust_the_bundle_does_not_talk_to_the_double() -> None:
    """The certificate is none that anybody knows."""
    with Emulator(tls=True) as double, pytest.raises(httpx.ConnectError, match="CERTIFICATE"):
        httpx.get(double.url, trust_env=False, timeout=TIMEOUT_S)


def test_plain_http_is_not_answered() -> None:
    """Where https is served nothing else is, and the server lives on."""
    with Emulator(tls=True) as double:
        assert double.ca_file is not None
        with pytest.raises(httpx.TransportError):
            http.get(double.url.replace("https", "http"))
        with trusting(double.ca_file) as client:
            assert 200 == client.get(f"{double.url}/ping").status_code


def test_a_client_that_keeps_its_connection_does_not_hold_the_server_up() -> None:
    """stop() closes an idle connection at once, without waiting for a farewell."""
    double = Emulator(tls=True).start()
    assert double.ca_file is not None
    context = ssl.create_default_context(cafile=str(double.ca_file))
    port = int(double.url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as kept,
    ):
        kept.sendall(b"GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert kept.recv(1024).startswith(b"HTTP/1.1 200")

        double.stop()  # a transport that is left open would be a warning, which is an error

        assert closed(kept)


def closed(connection: socket.socket) -> bool:
    """Read until the other side is gone; raise TimeoutError if it is not."""
    connection.settimeout(TIMEOUT_S)
    try:
        while connection.recv(1024):
            pass
    except (ConnectionError, ssl.SSLError):
        return True
    return True


def test_run_code_finds_what_to_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that a double prints are enough for the agent-side tool."""
    with Emulator(tls=True) as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)

        assert '"text": "42\\n"' in run_code("print(6 * 7)")


def test_a_file_to_trust_that_is_none_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """run_code says which variable names it."""
    with Emulator(tls=True) as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))

        with pytest.raises(PlatformUnreachableError, match=r"SSL_CERT_FILE names .*gone\.pem"):
            run_code("1")


@pytest.mark.parametrize("client", ["platform", "veadk", "agentkit"])
def test_the_environment_names_what_to_trust(client: str) -> None:
    """httpx and requests read different variables; over plain http there is neither."""
    with Emulator(tls=True) as double:
        variables = double.environment(client)
        assert {str(double.ca_file)} == {
            variables["SSL_CERT_FILE"],
            variables["REQUESTS_CA_BUNDLE"],
        }
    with Emulator() as plain:
        assert not {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"} & set(plain.environment(client))


@pytest.mark.slow
def test_an_authority_is_kept(tmp_path: Path) -> None:
    """What a client trusts stays right over a restart; the key is nobody else's to read."""
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


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff"])
def test_an_authority_that_cannot_be_read_is_made_again(tmp_path: Path, content: bytes) -> None:
    """A damaged file is of no use to anybody."""
    (tmp_path / "ca.pem").write_bytes(content)

    tls = certificates.prepare(tmp_path, ["localhost"])

    assert (tmp_path / "ca.pem").read_bytes().startswith(b"-----BEGIN")
    assert tls.bundle.is_file()


def test_the_bundle_holds_what_was_trusted_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is pointed at it can still call the servers it could call."""
    before = tmp_path / "before.pem"
    before.write_text("what was trusted\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(before))
    tls = certificates.prepare(tmp_path / "tls", ["localhost"])
    first = tls.bundle.read_text()

    monkeypatch.setenv("SSL_CERT_FILE", str(tls.bundle))
    again = certificates.prepare(tmp_path / "tls", ["localhost"]).bundle.read_text()

    assert first.startswith("what was trusted\n\n-----BEGIN CERTIFICATE-----")
    assert first.partition("\n\n")[2] == again[-len(first.partition("\n\n")[2]) :]
    assert 1 == again.count(first.partition("\n\n")[2])


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"allow_hosts": ("a" * 64,)}, "allow_hosts"), ({"tls_directory": "file/x"}, "tls_directory")],
)
def test_what_no_certificate_can_be_made_for_is_refused(
    settings: dict[str, object],
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The setting is named, and no socket or file is left."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()

    with pytest.raises(SettingsError) as caught:
        Emulator(tls=True, **settings)

    assert key == caught.value.key
