"""All settings of the double, with their types.

A setting is taken from the first source that has it: keyword arguments, the environment
(``AGENTDOUBLE_PORT=9000``), a TOML file (``agentdouble.toml`` in the working directory, or the
file that ``AGENTDOUBLE_CONFIG`` names), the defaults below. An unknown key in any source is an
error that suggests the nearest one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeAlias, TypeVar

import pydantic_settings
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentdouble.core import ledger, profiles
from agentdouble.core.environment import LOOPBACK_NAMES, OWN_ADDRESS, UNLISTED
from agentdouble.core.signing import Credentials
from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import LedgerError, ProfileError, SettingsError, StateError
from agentdouble.state import check_url

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PREFIX = "AGENTDOUBLE_"
CONFIG_VARIABLE = "AGENTDOUBLE_CONFIG"
DEFAULT_FILE = "agentdouble.toml"
_APPLICATIONS = ("app", "apps", "application", "applications")
MIB = 1024 * 1024
ACCESS_KEY = r"^[!-+.0-~-]+$"  # printable ASCII without the separators of a signature's scope


@dataclass(frozen=True)
class _OnNodes:
    """Marks a setting that nodes receive, too, because it takes effect where sessions run."""


_T = TypeVar("_T")
_ON_NODES = _OnNodes()
# A setting without this goes to no node: it may be a secret, and a node runs code of sessions.
OnNodes: TypeAlias = Annotated[_T, _ON_NODES]


class KeyPair(BaseModel):
    """One more key pair that may sign, a table of the setting ``keys``.

    With a ``session_token`` these are temporary credentials, and requests must send the token.
    Without ``full_access`` every control-plane action is refused (CTL-07).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    access_key: str = Field(pattern=ACCESS_KEY)
    secret_key: SecretStr = Field(min_length=1)
    session_token: SecretStr | None = None
    full_access: bool = True

    @field_validator("session_token")
    @classmethod
    def _fits_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not re.fullmatch(r"[!-~]+", token.get_secret_value()):
            raise ValueError("a session token has printable ASCII characters without spaces")
        return token


class Settings(BaseSettings):
    """All settings of the double; make them with ``Settings.load()``."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    api_key: SecretStr | None = Field(
        None,
        min_length=1,  # an empty key would let every caller in
        description="key for every surface; required beyond loopback",
    )
    token: SecretStr | None = Field(
        None,
        min_length=1,
        description="token for the routes below /_emulator; by default generated",
    )
    insecure: bool = Field(False, description="listen beyond loopback without an api_key")
    allow_hosts: tuple[str, ...] = Field((), description="further host names that requests may use")
    tls: bool = Field(False, description="serve https, with a generated certificate")
    tls_directory: Path | None = Field(
        None, description="where to keep the certificate authority; by default temporary"
    )
    allow_origins: tuple[str, ...] = Field(
        (), description="origins of web pages that may call, as http://localhost:3000; * for all"
    )
    body_limit: int = Field(32 * MIB, ge=1, description="largest request body, in bytes")

    console: bool | None = Field(
        None, description="start the web console; by default agentdouble serve does"
    )
    console_port: int = Field(
        0, ge=0, le=65535, description="port of the console; by default a free one"
    )

    upload_limit: int = Field(
        4096 * MIB, ge=1, description="largest upload to a session's files, in bytes"
    )
    agents: Path | None = Field(
        None, description="agents directory of API-server mode; by default the built-in agents"
    )
    reload: bool = Field(False, description="import an agent again when one of its files changes")

    access_key: str | None = Field(
        None,
        pattern=ACCESS_KEY,
        examples=["printable ASCII without spaces, commas and slashes"],
        description="access key; by default generated",
    )
    secret_key: SecretStr | None = Field(
        None, min_length=1, description="secret key; by default generated"
    )
    keys: tuple[KeyPair, ...] = Field(
        (),
        description="further key pairs: access_key, secret_key, full_access, session_token",
    )
    check_signatures: bool = Field(
        True, description="require a signature by one of these keys on control-plane requests"
    )
    tool_id: str = Field(
        "t-sandbox",
        pattern=r"^t-[A-Za-z0-9-]+$",
        examples=["t- and letters, digits or -"],
        description="sandbox tool id",
    )
    max_tools: int | None = Field(
        None, ge=1, description="largest number of sandbox tools; by default there is none"
    )
    rate_per_s: int = Field(
        20, ge=1, description="control-plane requests in a second, if U-LIMITS limits their rate"
    )
    tool_rate_per_s: int = Field(
        3,
        ge=1,
        description="changes of sandbox tools in a second, if U-LIMITS limits the rate of requests",
    )

    state: str = Field(
        "memory",
        description="where to keep records: memory, sqlite:///FILE or postgresql://...",
    )

    provisioner: OnNodes[Literal["auto", "local-provisioner"]] = Field(
        "auto",
        description="how to start kernels: with the fork server or, with local-provisioner, as programs; "
        "auto uses the fork server on Linux",
    )
    pool_size: OnNodes[int] = Field(
        2, ge=0, description="kernels to keep ready once the sandbox is in use"
    )
    preload: OnNodes[tuple[str, ...]] = Field(
        (), description="modules to import in advance, so that new kernels have them"
    )
    start_timeout_s: OnNodes[float] = Field(
        30.0, gt=0, description="longest start of a kernel or browser"
    )
    isolation: OnNodes[Literal["auto", "none"]] = Field(
        "auto", description="auto isolates kernels and runtimes as far as this machine can"
    )
    network: OnNodes[Literal["shared", "none"]] = Field(
        "shared",
        description="shared: sessions use this machine's network; none: they have none, and no kernel "
        "starts where that is impossible",
    )
    memory_limit: OnNodes[int] = Field(
        4096 * MIB,
        ge=64 * MIB,
        description="memory of a session, in bytes; its Python kernel cannot allocate more",
    )
    workspace_limit: OnNodes[int] = Field(
        1024 * MIB,
        ge=MIB,
        description="size of a session's files together with its snapshots', in bytes; a single file "
        "may have 7/8 of it",
    )
    javascript_memory_limit: OnNodes[int] = Field(
        512 * MIB, ge=64 * MIB, description="heap of a session's JavaScript engine, in bytes"
    )
    process_limit: OnNodes[int] = Field(
        256, ge=32, description="processes and threads of a session, where they can be counted"
    )
    visible_paths: OnNodes[tuple[Annotated[str, Field(pattern="^/")], ...]] = Field(
        (),
        examples=["an absolute path"],
        description="absolute paths that sessions and runtimes may read besides system and Python",
    )
    open_files_limit: OnNodes[int] = Field(
        1024, ge=64, description="open files of a session's processes"
    )
    max_instances: int | None = Field(
        None,
        ge=1,
        description="largest number of living session instances; by default what this machine can "
        "hold when the double starts",
    )
    nodes: str | None = Field(
        None,
        pattern=r"^(ray://[^/]+:\d+|local://[1-9]\d?)$",
        examples=["ray://HOST:PORT", "local://N"],
        description="where sessions run instead of on this machine: ray://HOST:PORT, the machines of "
        "a Ray cluster, or local://N, N processes to try it out",
    )
    ray_without_token: bool = Field(
        False, description="use a Ray cluster that demands no token, so that sessions can join it"
    )
    node_capacity: int | None = Field(
        None, ge=1, description="largest number of sessions of a node; by default what it can hold"
    )
    node_silence_s: float = Field(
        5.0, ge=0.5, description="seconds without an answer until a node is lost"
    )
    browser: OnNodes[str | None] = Field(
        None, description="name or path of the browser for sessions; by default found on the path"
    )
    max_browsers: OnNodes[int] = Field(8, ge=0, description="largest number of running browsers")
    max_session_snapshots: int = Field(
        16, ge=0, description="largest number of session snapshots taken on request"
    )
    session_snapshot_ttl_s: int | None = Field(
        None,
        ge=1,
        description="age at which a session snapshot ends, in seconds; by default there is none",
    )
    max_sleeping_sessions: int = Field(
        32,
        ge=0,
        description="largest number of expired sessions that can be resumed; the oldest are dropped",
    )
    sleeping_sessions_limit: int = Field(
        4096 * MIB,
        ge=MIB,
        description="memory and files of expired sessions that can be resumed, in bytes",
    )
    session_ttl_s: int = Field(1800, ge=1, description="lifetime of a session instance, in seconds")
    exec_timeout_s: OnNodes[int] = Field(
        30, ge=1, description="default timeout of code, in seconds"
    )
    exec_timeout_max_s: OnNodes[int] = Field(
        300, ge=1, description="largest timeout of code, in seconds"
    )
    output_limit: OnNodes[int] = Field(
        MIB,
        ge=1,
        lt=8 * MIB,  # the limit of our kernels; the double must see that there was more
        description="largest output of an execution, in bytes",
    )
    code_limit: OnNodes[int] = Field(
        MIB, ge=1, description="largest code of an execution, in bytes"
    )

    runtimes: tuple[dict[str, Any], ...] = Field(
        (),
        repr=False,
        description="runtimes to start with, each with name and application",
    )
    runtime_sources: tuple[Path, ...] = Field(
        (),
        description="directories from which the control plane may create runtimes; by default the "
        "working directory",
    )

    runtime_idle_s: float = Field(
        300.0,
        gt=0,
        description="seconds without requests until a runtime scales to zero, if U-SCALE-IDLE "
        "leaves it to the settings",
    )

    journal_size: int = Field(1000, ge=1, description="number of requests that the journal keeps")
    model_scripts: tuple[dict[str, Any], ...] = Field(
        (),
        repr=False,
        description="scripts of the model, each with when and steps; by default agentdouble serve "
        "has one that calls run_code",
    )
    faults: tuple[dict[str, Any], ...] = Field(
        (), description="faults to arm at start, each with kind and operation"
    )
    unknowns: dict[str, str] = Field(
        default_factory=dict, description="chosen alternatives of the unknowns, by id"
    )
    profile: Path | None = Field(
        None,
        description="profile.toml with the alternatives that a deployment uses; the setting unknowns "
        "takes precedence",
    )

    _lowered_by: str = PrivateAttr("")

    @classmethod
    def load(cls, file: Path | None = None, **overrides: Any) -> Settings:
        """Read the settings from ``overrides``, the environment and a TOML file.

        Raises SettingsError for an unknown key, a wrong value, or a file that cannot be read.
        """
        _check_keys(overrides, "the arguments")
        _check_keys(_environment_keys(), "the environment")
        from_file = _read_file(file)
        values = {key: value for key, value in overrides.items() if value is not None}
        in_environment = _environment_keys()
        merged = {k: v for k, v in from_file.items() if k not in in_environment} | values
        try:
            settings = cls(**merged)
        except ValidationError as error:
            _raise(error, values, in_environment, file or _default_file())
        except (pydantic_settings.SettingsError, RecursionError) as error:  # a value is not JSON
            _raise_not_json(error, in_environment)
        settings._check_unknowns()
        settings._lowered_by = _lowered_by(settings, merged.keys() - values.keys(), file)
        try:
            check_url(settings.state)
        except StateError as error:
            raise SettingsError(str(error), key="state", source="the settings") from None
        return settings

    @property
    def lowered_by(self) -> str:
        """A sentence that names the file whose settings lower the protection, or ""."""
        return self._lowered_by

    @field_validator("keys")
    @classmethod
    def _each_key_once(cls, keys: tuple[KeyPair, ...], info: ValidationInfo) -> tuple[KeyPair, ...]:
        named = [info.data.get("access_key"), *(key.access_key for key in keys)]
        twice = sorted({name for name in named if name and named.count(name) > 1})
        if twice:
            raise ValueError(f"the access key {twice[0]} is there twice")
        return keys

    def for_nodes(self) -> dict[str, Any]:
        """Return what a node gets, JSON-ready: those settings marked ``OnNodes`` that are set."""
        marked = {name for name, f in type(self).model_fields.items() if _ON_NODES in f.metadata}
        return self.model_dump(mode="json", include=marked, exclude_unset=True)

    def chosen(self) -> ledger.Ledger:
        """Return the ledger with the alternatives that these settings choose."""
        profile = profiles.read(self.profile) if self.profile is not None else profiles.EMPTY
        return profile.make_ledger(self.unknowns)

    def own_token(self) -> str:
        """Return the token of the double's own routes; one that is not set is made anew."""
        return secrets.token_urlsafe(32) if self.token is None else self.token.get_secret_value()

    def key_pair(self) -> Credentials:
        """Return the key pair that signs; a part that is not set is made anew each time."""
        secret = self.secret_key
        return Credentials(
            self.access_key or f"AKLT{secrets.token_hex(12)}",
            secrets.token_urlsafe(32) if secret is None else secret.get_secret_value(),
        )

    def _check_unknowns(self) -> None:
        try:
            ledger.Ledger(self.unknowns)
            self.chosen()
        except ProfileError as error:
            raise SettingsError(str(error), key="profile", source=error.file) from None
        except LedgerError as error:
            raise SettingsError(str(error), key="unknowns", source="the settings") from None


def _environment_keys() -> dict[str, str]:
    return {
        name[len(PREFIX) :].lower(): value
        for name, value in os.environ.items()
        if name.upper().startswith(PREFIX) and not _is_no_setting(name.upper())
    }


def _is_no_setting(variable: str) -> bool:
    not_settings = (CONFIG_VARIABLE, OWN_ADDRESS, UNLISTED)
    return variable in not_settings or variable.startswith(f"{OWN_ADDRESS}_")


def _default_file() -> Path | None:
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None


def _read_file(file: Path | None) -> Mapping[str, Any]:
    path = file or _default_file()
    if path is None:
        return {}
    content = read_toml(path, "settings")
    _check_keys(content, str(path))
    return _placed(content, path.parent.absolute())


def _lowered_by(settings: Settings, in_file: Iterable[str], file: Path | None) -> str:
    path = file or _default_file()
    lowered = sorted(name for name in in_file if _lowers(name, getattr(settings, name)))
    if path is None or not lowered:
        return ""
    named = ", ".join(
        f"{name} = {json.dumps(getattr(settings, name), default=str)}" for name in lowered
    )
    return f"The settings file {path.absolute()} lowers the protection of this double: {named}."


def _lowers(name: str, value: Any) -> bool:
    if name == "host":
        return value not in LOOPBACK_NAMES
    if name in ("allow_origins", "allow_hosts", "visible_paths"):
        return bool(value)
    return (name, value) in (
        ("isolation", "none"),
        ("insecure", True),
        ("check_signatures", False),
        ("ray_without_token", True),
    )


def _placed(content: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return a file's settings, with the paths of its runtimes relative to the file."""
    placed = dict(content)
    tables, sources = content.get("runtimes"), content.get("runtime_sources")
    if isinstance(tables, list) and all(isinstance(table, dict) for table in tables):
        placed["runtimes"] = [_placed_table(table, folder) for table in tables]
    if isinstance(sources, list) and all(isinstance(source, str) for source in sources):
        placed["runtime_sources"] = [folder / source for source in sources]
    return placed


def _placed_table(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = {"directory": ".", **table}
    paths = {name: values[name] for name in ("directory", "python") if name in values}
    spec: dict[str, Any] = {
        name: str(folder / path) for name, path in paths.items() if isinstance(path, str)
    }
    return {**values, **spec}


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Return the content of a TOML file; raise SettingsError. ``what`` names the content."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        message = f"The {kind} file {path} cannot be read: {error.strerror}."
        raise SettingsError(message, key="", source=str(path)) from None
    except RecursionError:
        message = f"The {kind} file {path} cannot be read: it is nested too deeply."
        raise SettingsError(message, key="", source=str(path)) from None
    except ValueError as error:  # also an integer with more digits than Python reads
        message = f"The {kind} file {path} cannot be read: {error}"
        raise SettingsError(message, key="", source=str(path)) from None


def _check_keys(keys: Mapping[str, Any], source: str) -> None:
    for key in keys:
        if key in Settings.model_fields:
            continue
        if key in _APPLICATIONS:
            message = (
                f"{key} in {source} is not a setting. Applications come first: "
                'make_platform("x:app"), Emulator(app), agentdouble serve x:app.'
            )
            raise SettingsError(message, key=key, source=source)
        names: Iterable[str] = Settings.model_fields
        name = key
        if source == "the environment":
            name, names = PREFIX + key.upper(), (PREFIX + field.upper() for field in names)
        hint = did_you_mean(name, names)
        raise SettingsError(f"Unknown setting in {source}: {name}.{hint}", key=key, source=source)


def _raise(
    error: ValidationError,
    values: Mapping[str, Any],
    in_environment: Mapping[str, str],
    file: Path | None,
) -> NoReturn:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    top = str(first["loc"][0]) if first["loc"] else ""
    if top in values:
        source = "the arguments"
    elif top in in_environment:
        source = f"the environment ({PREFIX}{top.upper()})"
    else:
        source = str(file)
    reason = _reason(key, first)
    message = f"The setting {key} from {source} {reason}."
    raise SettingsError(message, key=key, source=source, reason=reason) from None


def _reason(key: str, error: Mapping[str, Any]) -> str:
    return _wrong(key, error) + _shown(key, error["input"])


def _shown(key: str, value: Any) -> str:
    """Return the wrong value of a setting, if it can be no secret."""
    if not isinstance(value, str | int | float) or key in ("state", "access_key"):
        return ""
    field = Settings.model_fields.get(key)
    is_secret = field is None or "SecretStr" in str(field.annotation)
    return "" if is_secret else f", not {value!r:.60}"


def _wrong(key: str, error: Mapping[str, Any]) -> str:
    if error["type"] == "tuple_type":
        tables = key in ("runtimes", "faults")
        return f"must be a list of tables, each headed [[{key}]]" if tables else "must be a list"
    if error["type"] in ("too_short", "string_too_short"):
        return "must not be empty"
    field = Settings.model_fields.get(key.partition(".")[0])
    if error["type"] == "string_pattern_mismatch" and field is not None and field.examples:
        return f"must be {' or '.join(map(str, field.examples))}"
    text = str(error["msg"])
    reason = re.sub("^(Input|Value|String) should", "must", text)
    return reason if reason != text else f"is wrong: {text}"


def _raise_not_json(error: Exception, in_environment: Mapping[str, str]) -> NoReturn:
    if isinstance(error, RecursionError):  # the error names no setting
        key = max(in_environment, key=lambda name: len(in_environment[name]))
    else:
        key = next((key for key in in_environment if f'"{key}"' in str(error)), "")
    name = PREFIX + key.upper()
    message = (
        f"The setting {key} from the environment ({name}) must be JSON: "
        """a list such as ["A", "B"], or an object such as {"A": "B"}."""
    )
    raise SettingsError(message, key=key, source=f"the environment ({name})") from None
