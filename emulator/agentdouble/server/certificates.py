"""Certificates made when they are needed, for clients that speak only https (CTL-08).

A certificate authority is kept in a directory: ``ca.pem`` has its key and stays private, and
clients trust ``ca-bundle.pem``. The bundle also has the certificates that were trusted before,
because ``SSL_CERT_FILE`` replaces a client's trust and an agent also calls its model.
``agentdouble serve`` keeps its authority, so the file stays valid after a restart.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble.core import environment
from agentdouble.core.imports import import_now
from agentdouble.errors import MissingExtraError, SettingsError

if TYPE_CHECKING:
    import trustme

_CERTIFICATE = "-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True)
class ServerTls:
    """The ``context`` for serving https, and the ``bundle``: the file that its clients trust."""

    context: ssl.SSLContext
    bundle: Path
    _temporary: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the temporary directory, if there is one."""
        if self._temporary is not None:
            self._temporary.cleanup()


def prepare(directory: Path | None, names: Iterable[str]) -> ServerTls:
    """Issue a certificate for host names and addresses, signed by the authority in ``directory``.

    The authority is made on first use. Without a directory it is a new one, and ``close()``
    removes it. Raises SettingsError if a name does not fit into a certificate or the directory
    cannot be used, and MissingExtraError if trustme is not installed.
    """
    if directory is not None:
        return _issue(directory, names, None)
    temporary = tempfile.TemporaryDirectory(prefix="agentdouble-tls-")
    try:
        return _issue(Path(temporary.name), names, temporary)
    except BaseException:
        temporary.cleanup()
        raise


def _issue(
    directory: Path, names: Iterable[str], temporary: tempfile.TemporaryDirectory[str] | None
) -> ServerTls:
    try:
        import_now("trustme")
        import trustme  # optional
    except ModuleNotFoundError as error:
        raise MissingExtraError("Serving https", extra="emulator") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    bundle = directory / "ca-bundle.pem"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = _authority(directory / "ca.pem", trustme.CA)
        authority.issue_cert(*sorted(names)).configure_cert(context)
        content = _trusted_already(bundle) + authority.cert_pem.bytes()
        _draft(bundle, content, 0o644).replace(bundle)
    except ValueError as error:
        message = f"A name in host or allow_hosts does not fit into a certificate: {error}"
        raise SettingsError(message, key="allow_hosts", source="the settings") from None
    except OSError as error:
        message = f"tls_directory cannot be used for a certificate authority: {error}"
        raise SettingsError(message, key="tls_directory", source="the settings") from None
    return ServerTls(context, bundle, temporary)


def _authority(path: Path, make: type[trustme.CA]) -> trustme.CA:
    with suppress(OSError, ValueError):
        key, marker, certificate = path.read_text("ascii").partition(_CERTIFICATE)
        return make.from_pem((marker + certificate).encode(), key.encode())
    path.unlink(missing_ok=True)  # the file cannot be read, so make a new one
    authority = make(organization_name="agentdouble")
    draft = _draft(path, authority.private_key_pem.bytes() + authority.cert_pem.bytes(), 0o600)
    try:
        os.link(draft, path)  # unlike replace(), link() fails if another double was faster
    except FileExistsError:
        return _authority(path, make)
    finally:
        draft.unlink()
    return authority


def _draft(path: Path, content: bytes, mode: int) -> Path:
    draft = path.with_suffix(f".{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return draft


def _trusted_already(bundle: Path) -> bytes:
    """Return the certificates that this machine's clients trust: its own bundle, or certifi's."""
    named = os.environ.get(environment.CA_FILE)
    if named and Path(named) != bundle:
        with suppress(OSError):
            return Path(named).read_bytes() + b"\n"
    import_now("certifi")
    import certifi  # slow: it reads a file

    return Path(certifi.where()).read_bytes() + b"\n"
