"""Every knob of the double, typed.

Settings come from, the first that has it: keyword arguments, the environment
(``AGENTDOUBLE_PORT=9000``), a TOML file (``agentdouble.toml`` in the working directory, or
the file that ``AGENTDOUBLE_CONFIG`` names), the defaults below. A key that nobody knows is an
error that suggests the nearest one, wherever it stands.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

import pydantic_settings
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentdouble import ledger
from agentdouble.errors import LedgerError, SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PREFIX = "AGENTDOUBLE_"
CONFIG_VARIABLE = "AGENTDOUBLE_CONFIG"
DEFAULT_FILE = "agentdouble.toml"
MIB = 1024 * 1024


class Settings(BaseSettings):
    """Every knob of the double; build it with ``Settings.load()``."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    api_key: SecretStr | None = Field(
        None,
        min_length=1,  # an empty key would let everybody in
        description="key that every surface asks for; needed beyond loopback",
    )
    insecure: bool = Field(False, description="listen beyond loopback without an api_key")
    allow_hosts: tuple[str, ...] = Field((), description="more names that a Host header may carry")
    body_limit: int = Field(32 * MIB, ge=1, description="largest request body, in bytes")

    access_key: str | None = Field(
        None, pattern=r"^[^/,\s]+$", description="access key; made at start if absent"
    )
    secret_key: SecretStr | None = Field(
        None, min_length=1, description="its secret; made at start if absent"
    )
    tool_id: str = Field("t-sandbox", pattern=r"^t-[A-Za-z0-9-]+$", description="the sandbox tool")

    provisioner: str = Field(
        "auto",
        description="jupyter_client kernel provisioner that starts kernels; auto takes the fork "
        "server on Linux and local-provisioner elsewhere",
    )
    pool_size: int = Field(2, ge=0, description="kernels kept ready once the sandbox is in use")
    preload: tuple[str, ...] = Field(
        (), description="modules that the fork server imports, so that kernels have them warm"
    )
    kernel_start_timeout_s: float = Field(30.0, gt=0, description="patience with a new kernel")
    isolation: Literal["auto", "none"] = Field(
        "auto", description="hold forked kernels apart with what this machine offers, or not"
    )
    memory_limit: int = Field(
        4096 * MIB, ge=64 * MIB, description="address space of a session's Python kernel, in bytes"
    )
    open_files_limit: int = Field(1024, ge=64, description="open files of a session's processes")
    max_instances: int = Field(64, ge=1, description="largest number of living session instances")
    session_ttl_s: int = Field(1800, ge=1, description="validity of a session instance (SBX-03)")
    exec_timeout_s: int = Field(30, ge=1, description="timeout of code that asks for none")
    exec_timeout_max_s: int = Field(300, ge=1, description="largest timeout that code may ask for")
    plain_tracebacks: bool = Field(False, description="take the ANSI colours out of tracebacks")
    output_limit: int = Field(MIB, ge=1, description="largest output of an execution, in bytes")
    code_limit: int = Field(MIB, ge=1, description="largest code of an execution, in bytes")

    journal_size: int = Field(1000, ge=1, description="how many requests the journal keeps")
    unknowns: dict[str, str] = Field(
        default_factory=dict, description="alternatives chosen in the ledger of unknowns, by id"
    )

    @classmethod
    def load(cls, file: Path | None = None, **overrides: Any) -> Settings:
        """Read the settings from ``overrides``, the environment and a TOML file.

        Raises SettingsError for a key that nobody knows, a wrong value, or a file that cannot
        be read.
        """
        _check_keys(overrides, "the arguments")
        _check_keys(_environment_keys(), "the environment")
        from_file = _read_file(file)
        given = {key: value for key, value in overrides.items() if value is not None}
        in_environment = _environment_keys()
        merged = {k: v for k, v in from_file.items() if k not in in_environment} | given
        try:
            settings = cls(**merged)
        except ValidationError as error:
            _raise(error, given, in_environment, file or _default_file())
        except pydantic_settings.SettingsError as error:  # a value that must be JSON and is not
            _raise_not_json(error, in_environment)
        try:
            ledger.Ledger(settings.unknowns)
        except LedgerError as error:
            raise SettingsError(str(error), key="unknowns", source="the settings") from None
        return settings

    def chosen(self) -> ledger.Ledger:
        """Return the ledger with the alternatives that these settings choose."""
        return ledger.Ledger(self.unknowns)


def _environment_keys() -> dict[str, str]:
    return {
        name[len(PREFIX) :].lower(): value
        for name, value in os.environ.items()
        if name.upper().startswith(PREFIX) and name.upper() != CONFIG_VARIABLE
    }


def _default_file() -> Path | None:
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None


def _read_file(file: Path | None) -> Mapping[str, Any]:
    path = file or _default_file()
    if path is None:
        return {}
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"The settings file {path} cannot be read: {error}"
        raise SettingsError(message, key="", source=str(path)) from None
    _check_keys(content, str(path))
    return content


def _check_keys(keys: Mapping[str, Any], source: str) -> None:
    for key in keys:
        if key in Settings.model_fields:
            continue
        near = difflib.get_close_matches(key, Settings.model_fields, n=1)
        shown = PREFIX + key.upper() if source == "the environment" else key
        hint = ""
        if near:
            nearest = PREFIX + near[0].upper() if source == "the environment" else near[0]
            hint = f" Did you mean {nearest}?"
        raise SettingsError(f"Unknown setting in {source}: {shown}.{hint}", key=key, source=source)


def _raise(
    error: ValidationError,
    given: Mapping[str, Any],
    in_environment: Mapping[str, str],
    file: Path | None,
) -> NoReturn:
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    top = str(first["loc"][0]) if first["loc"] else ""
    if top in given:
        source = "the arguments"
    elif top in in_environment:
        source = f"the environment ({PREFIX}{top.upper()})"
    else:
        source = str(file)
    message = f"The setting {key} from {source} is wrong: {first['msg']}."
    raise SettingsError(message, key=key, source=source) from None


def _raise_not_json(error: Exception, in_environment: Mapping[str, str]) -> NoReturn:
    key = next((key for key in in_environment if f'"{key}"' in str(error)), "")
    shown = PREFIX + key.upper()
    message = f"The setting {key} from the environment ({shown}) is wrong: it must be JSON."
    raise SettingsError(message, key=key, source=f"the environment ({shown})") from None
