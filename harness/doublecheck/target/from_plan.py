"""From a plan to a target: its secrets come from the environment, whatever names them."""

from __future__ import annotations

from collections.abc import Mapping

from agentdouble import environment
from agentdouble.invoke_tool import DEFAULT_REGION
from agentdouble.signing import Credentials
from doublecheck.errors import ConfigurationError
from doublecheck.secret import Secret
from doublecheck.target.config_values import KEYED
from doublecheck.target.plan import Plan
from doublecheck.target.surfaces import Surface
from doublecheck.target.target import (
    API_KEY,
    OTHER_KEY,
    RESTRICTED_ACCESS_KEY,
    RESTRICTED_SECRET_KEY,
    Target,
)


def target(plan: Plan, environ: Mapping[str, str]) -> Target:
    """Return the target that a plan describes, which has an address.

    Raises TargetError for one that is unusable, and for a variable that a file names and that
    is not set.
    """
    url = plan.value("url")
    control_plane = plan.value("control_plane") or url
    api_server, mcp, a2a = (plan.value(key) or "" for key in ("api_server", "mcp", "a2a"))
    addresses = (url, control_plane, api_server, mcp, a2a)
    encrypted = any(one.startswith("https") for one in addresses)
    return Target(
        url=url,
        kind=plan.kind,
        control_plane=control_plane,
        tool_id=plan.value("tool_id"),
        credentials=_pair(plan, environ, "", environment.ACCESS_KEY, environment.SECRET_KEY),
        api_key=_api_key(plan, environ),
        region=plan.value("region") or DEFAULT_REGION,
        reference_app=bool(plan.value("reference_app")),
        ca_file=plan.value("ca_file") if encrypted else None,
        restricted=_pair(
            plan, environ, "restricted_", RESTRICTED_ACCESS_KEY, RESTRICTED_SECRET_KEY
        ),
        other_key=_other_key(plan, environ),
        name=plan.name,
        offered=plan.value("offers") or frozenset(),
        allow_writes=bool(plan.value("allow_writes")),
        api_keys=_api_keys(plan, environ),
        api_server=api_server,
        mcp=mcp,
        a2a=a2a,
    )


def variable_of(surface: Surface) -> str:
    """Return the variable that holds the API key of one surface alone."""
    return f"DOUBLECHECK_{surface.upper()}_API_KEY"


def pair_variables(plan: Plan) -> tuple[str, str]:
    """Return the variables that hold the key pair of a target."""
    access, secret = (plan.value(f"{key}_key_env") for key in ("access", "secret"))
    return access or environment.ACCESS_KEY, secret or environment.SECRET_KEY


def _pair(
    plan: Plan, environ: Mapping[str, str], prefix: str, access: str, secret: str
) -> Credentials | None:
    access_key = _secret(plan, environ, f"{prefix}access_key_env", access)
    secret_key = _secret(plan, environ, f"{prefix}secret_key_env", secret)
    return Credentials(access_key, secret_key) if access_key and secret_key else None


def _secret(plan: Plan, environ: Mapping[str, str], key: str, default: str) -> str | None:
    named = plan.value(key)
    return _held(plan, environ, key, named) if named else environ.get(default)


def _api_key(plan: Plan, environ: Mapping[str, str]) -> Secret | None:
    named = plan.value("api_key_env")
    if isinstance(named, str):
        return Secret(_held(plan, environ, "api_key_env", named))
    found = environ.get(API_KEY)
    return Secret(found) if found else None


def _other_key(plan: Plan, environ: Mapping[str, str]) -> Secret | None:
    found = _secret(plan, environ, "other_api_key_env", OTHER_KEY)
    return Secret(found) if found else None


def _api_keys(plan: Plan, environ: Mapping[str, str]) -> dict[Surface, Secret]:
    named = plan.value("api_key_env")
    keys = {one: environ[variable_of(one)] for one in KEYED if environ.get(variable_of(one))}
    if isinstance(named, Mapping):
        for surface in KEYED:
            if surface in named:
                keys[surface] = _held(plan, environ, "api_key_env", named[surface])
    return {surface: Secret(value) for surface, value in keys.items()}


def _held(plan: Plan, environ: Mapping[str, str], key: str, variable: str) -> str:
    value = environ.get(variable)
    if not value:
        source = plan.facts[key].source
        raise ConfigurationError(
            f"{source} names the environment variable {variable}, which is not set.",
            source=source,
            key=key,
        )
    return value
