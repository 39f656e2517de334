"""Target: the addresses of a platform, its credentials, and its declared properties."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from agentdouble.core import environment
from agentdouble.core.invoke_tool import DEFAULT_REGION, ToolAddress
from agentdouble.core.signing import Credentials as Credentials
from agentdouble.core.urls import is_https
from agentdouble.server import sockets
from doublecheck.core.notebook_repr import Secret
from doublecheck.errors import CredentialsMissingError, DoubleCheckError, TargetError
from doublecheck.target.facts import SURFACES, Surface, variable

if TYPE_CHECKING:
    from agentdouble import Emulator

Kind = Literal["double", "live"]
_WITH_ADDRESS: tuple[Surface, ...] = ("api_server", "control_plane", "mcp", "a2a")
DEFAULT_OFFERS: Mapping[Kind, frozenset[Surface]] = {
    "double": SURFACES - {"library"},
    "live": SURFACES - {"library", "services", "runtimes"},
}
MakeService = Callable[[str, Any], Mapping[str, Any]]
DropService = Callable[[str], None]


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine. False if it is not a URL."""
    try:
        return sockets.is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def checked(url: str) -> str:
    """Return an address without its trailing slash. Raise TargetError for an unusable one."""
    explanation = f"{url!r} is not a usable address; use http://host[:port] or https://host"
    if url and "/" not in url.partition("?")[0]:
        explanation += f", such as 'http://{url}'"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises ValueError for a wrong port)
    except ValueError as error:
        raise TargetError(f"{explanation} ({error}).") from None
    if not url.isprintable() or " " in url:
        raise TargetError(f"{explanation}, without spaces and control characters.")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TargetError(f"{explanation}.")
    if parts.query or parts.fragment or parts.username:
        raise TargetError(f"{explanation}, without a user, a query or a fragment.")
    return url.rstrip("/")


@dataclass(frozen=True)
class Target:
    """A platform that the harness checks or calls.

    ``url`` is the address of the application. ``api_server``, ``mcp``, ``a2a`` and
    ``control_plane`` are the addresses of those surfaces, by default the same. ``api_key`` is sent
    to each surface, unless ``api_keys`` has another key for it. ``problems`` has the surfaces that
    are known not to answer. ``offered`` are the surfaces that the target declares, by default those
    of its kind; then ``offers_assumed`` is set. ``allow_writes`` lets checks create and delete
    things on a live platform. ``examples`` is the number of generated inputs that each check tries,
    by default as many as suit the kind, and ``seed`` makes them reproducible. ``level`` decides
    which checks run. ``name`` is its name in reports. ``reference_app`` declares that the
    application is the reference application of the contract checks. ``ca_file`` names the
    certificates to trust instead of the public ones. ``restricted`` is a key pair without the
    full-access permission, for CTL-07, and ``other_key`` the key of another identity at the
    reference runtimes, for AUT-03. ``token`` is the secret of a double's own routes, and ``console``
    the address of its console, which has a token of its own.
    ``make_service`` creates an MCP service with a name in front of a backend and returns its access
    record, if that is possible; ``drop_service`` deletes it. Raises TargetError for an unusable
    URL.
    """

    url: str
    kind: Kind = "live"
    control_plane: str = ""
    tool_id: str | None = None
    credentials: Credentials | None = None
    api_key: Secret | None = None
    region: str = DEFAULT_REGION
    reference_app: bool = False
    ca_file: str | None = None
    restricted: Credentials | None = None
    other_key: Secret | None = None
    token: Secret | None = None
    console: Secret | None = None
    make_service: MakeService | None = field(default=None, repr=False, compare=False)
    drop_service: DropService | None = field(default=None, repr=False, compare=False)
    name: str = ""
    offered: frozenset[Surface] = frozenset()
    offers_assumed: bool = False
    allow_writes: bool = False
    examples: int | None = None
    seed: int = 0
    level: str = "full"
    api_server: str = ""
    mcp: str = ""
    a2a: str = ""
    api_keys: Mapping[Surface, Secret] = field(default_factory=dict, hash=False)
    problems: Mapping[Surface, DoubleCheckError] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.kind not in DEFAULT_OFFERS:
            raise TargetError(f"The kind of a target is double or live, not {self.kind!r:.80}.")
        object.__setattr__(self, "name", self.name or self.kind)
        object.__setattr__(self, "offers_assumed", self.offers_assumed or not self.offered)
        object.__setattr__(self, "offered", self.offered or DEFAULT_OFFERS[self.kind])
        object.__setattr__(self, "url", checked(self.url))
        for surface in _WITH_ADDRESS:
            address = getattr(self, surface) or self.url
            object.__setattr__(self, surface, checked(address))

    @classmethod
    def of(cls, double: Emulator, *, reference_app: bool = False) -> Target:
        """Return the target for a running double in this process."""
        key = double.settings.api_key
        return cls(
            url=double.url,
            kind="double",
            tool_id=double.tool_id,
            credentials=double.credentials,
            api_key=None if key is None else Secret(key.get_secret_value()),
            reference_app=reference_app,
            ca_file=double.connection.ca_file,
            restricted=_restricted_of(double),
            token=Secret(double.token),
            console=None if double.console_url is None else Secret(double.console_url),
            make_service=_service_maker(double),
            drop_service=lambda name: double.mcp.delete(name),
            offered=SURFACES,
        )

    @classmethod
    def find(
        cls,
        url: str,
        kind: Kind,
        *,
        control_plane: str | None = None,
        tool_id: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        api_key: str | None = None,
        region: str | None = None,
        reference_app: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> Target:
        """Return the target at ``url``. Missing facts come from the environment.

        The control plane is at ``url`` unless it is given, whatever the environment contains, so
        that a variable for another platform cannot redirect requests.
        """
        key = api_key or environ.get(variable("api_key"))
        token = environ.get(environment.TOKEN)
        return cls(
            url=url,
            kind=kind,
            control_plane=control_plane or url,
            tool_id=tool_id or environ.get(variable("tool_id")) or None,
            credentials=_credentials(access_key, secret_key, environ),
            api_key=Secret(key) if key else None,
            region=region or environ.get(variable("region")) or DEFAULT_REGION,
            reference_app=reference_app,
            ca_file=_trusted(url, control_plane, environ),
            restricted=_restricted(environ),
            token=Secret(token) if token else None,
        )

    @property
    def admin(self) -> bool:
        """Whether the target answers ``/_emulator``, so its clock and journal are accessible."""
        return self.kind == "double"

    def offers(self, surface: Surface) -> bool:
        """Whether the target declares a surface."""
        return surface in self.offered

    def at(self, surface: Surface) -> str:
        """Return the address of a surface."""
        return str(getattr(self, surface)) if surface in _WITH_ADDRESS else self.url

    def key_of(self, surface: Surface) -> Secret | None:
        """Return the API key for a surface."""
        return self.api_keys.get(surface, self.api_key)

    @property
    def addresses(self) -> frozenset[str]:
        """All addresses of the target."""
        return frozenset({self.url, *map(self.at, _WITH_ADDRESS)})

    @property
    def loopback(self) -> bool:
        """Whether all surfaces of the target are on this machine."""
        return all(map(is_loopback, self.addresses))

    def address(self) -> ToolAddress:
        """Return the address and the credentials for InvokeTool. Raise CredentialsMissingError."""
        if self.credentials is None:
            raise CredentialsMissingError(
                f"Requests to the control plane at {self.control_plane} must be signed: pass "
                f"access_key and secret_key, or set {environment.ACCESS_KEY} and "
                f'{environment.SECRET_KEY}; for a running double: eval "$(agentdouble env)"; '
                "for an Emulator of this process: connect(it)."
            )
        return ToolAddress(self.control_plane, self.credentials, self.region)

    def sandbox_tool(self) -> str:
        """Return the id of the sandbox tool. Raise CredentialsMissingError if there is none."""
        if self.tool_id is None:
            raise CredentialsMissingError(
                "No sandbox tool is named to run code in: pass tool_id or set "
                f'{environment.TOOL_ID}; for a running double: eval "$(agentdouble env)"; for '
                "an Emulator of this process: connect(it)."
            )
        return self.tool_id

    def environment(self, client: str = "platform") -> Mapping[str, str]:
        """Return the environment variables that direct a client to this target.

        ``client`` is one of ``agentdouble.core.environment.CLIENTS``. Raises ValueError for others.
        """
        address = self.address()
        connection = environment.DoubleConnection(
            url=self.control_plane,
            tool_id=self.sandbox_tool(),
            access_key=address.credentials.access_key,
            secret_key=address.credentials.secret_key,
            region=self.region,
            ca_file=self.ca_file,
            token=self.token.reveal() if self.token else "",
        )
        return environment.variables(connection, client)


def named_url(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the URL in the environment, or None."""
    url, host = environ.get(variable("url")), environ.get(environment.TOOL_HOST)
    if url or not host:
        return url or None
    return f"{environ.get(environment.TOOL_SCHEME) or 'https'}://{host}"


def _trusted(url: str, control_plane: str | None, environ: Mapping[str, str]) -> str | None:
    encrypted = any(is_https(address or "") for address in (url, control_plane))
    return (environ.get(variable("ca_file")) or None) if encrypted else None


def _restricted(environ: Mapping[str, str]) -> Credentials | None:
    access = environ.get(variable("restricted_access_key"))
    secret = environ.get(variable("restricted_secret_key"))
    return Credentials(access, secret) if access and secret else None


def _service_maker(double: Emulator) -> MakeService:
    def make(name: str, backend: Any) -> Mapping[str, Any]:
        double.mcp.create(name, backend)
        return double.mcp.record(name)

    return make


def _restricted_of(double: Emulator) -> Credentials | None:
    restricted = next((key for key in double.settings.keys if not key.full_access), None)
    if restricted is None:
        return None
    token = restricted.session_token
    return Credentials(
        restricted.access_key,
        restricted.secret_key.get_secret_value(),
        None if token is None else token.get_secret_value(),
    )


def _credentials(
    access_key: str | None, secret_key: str | None, environ: Mapping[str, str]
) -> Credentials | None:
    if (access_key is None) != (secret_key is None):
        raise TargetError("access_key and secret_key belong together: pass both or neither.")
    access = access_key or environ.get(variable("access_key"))
    secret = secret_key or environ.get(variable("secret_key"))
    return Credentials(access, secret) if access and secret else None
