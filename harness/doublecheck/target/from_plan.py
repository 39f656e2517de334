"""Make a target from a plan, and describe the plan in words. Secrets come from the environment."""

from __future__ import annotations

from collections.abc import Mapping

from agentdouble.core.environment import TOKEN
from agentdouble.core.signing import Credentials
from doublecheck.core.notebook_repr import Secret
from doublecheck.errors import ConfigurationError
from doublecheck.target.config_files import KEYED
from doublecheck.target.facts import BY_NAME, FACTS, Surface, variable
from doublecheck.target.plan import Plan
from doublecheck.target.target import Target

# the fields that a target stores unchanged; others are secrets, or say how a target is made
FIELDS = {
    fact.key: "offered" if fact.name == "offers" else fact.name
    for fact in FACTS
    if fact.type in ("address", "count", "file", "flag", "level", "number", "surfaces", "text")
}
_ADDRESSES = tuple(fact.key for fact in FACTS if fact.type == "address")


def target(plan: Plan, environ: Mapping[str, str]) -> Target:
    """Return the target that a plan describes. The plan must have an address.

    Raises TargetError if the target is unusable, or if a file names a variable that is not set.
    """
    fields = {field: plan.value(key) for key, field in FIELDS.items() if key in plan.facts}
    addresses = (plan.value(key) or "" for key in _ADDRESSES)
    if not any(address.startswith("https") for address in addresses):
        fields.pop("ca_file", None)  # SSL_CERT_FILE is often set, and its file may be unreadable
    return Target(
        **fields,
        kind=plan.kind,
        name=plan.name,
        credentials=_pair(plan, environ, ""),
        restricted=_pair(plan, environ, "restricted_"),
        api_key=_wrapped(_secret(plan, environ, "api_key")),
        token=_wrapped(environ.get(TOKEN)),
        api_keys=_api_keys(plan, environ),
        other_key=_wrapped(_secret(plan, environ, "other_api_key")),
    )


def variable_of(surface: Surface) -> str:
    """Return the variable for the API key of a single surface."""
    return f"DOUBLECHECK_{surface.upper()}_API_KEY"


def pair_variables(plan: Plan) -> tuple[str, str]:
    """Return the variables for the key pair of a target."""
    access, secret = (
        plan.value(BY_NAME[name].key) or variable(name) for name in ("access_key", "secret_key")
    )
    return access, secret


def _pair(plan: Plan, environ: Mapping[str, str], prefix: str) -> Credentials | None:
    access_key = _secret(plan, environ, f"{prefix}access_key")
    secret_key = _secret(plan, environ, f"{prefix}secret_key")
    return Credentials(access_key, secret_key) if access_key and secret_key else None


def _api_keys(plan: Plan, environ: Mapping[str, str]) -> dict[Surface, Secret]:
    key = BY_NAME["api_key"].key
    keys = {surface: value for surface in KEYED if (value := environ.get(variable_of(surface)))}
    if isinstance(named := plan.value(key), Mapping):
        for surface, name in named.items():
            keys[surface] = _required_variable(plan, environ, key, name)
    return {surface: Secret(keys[surface]) for surface in KEYED if surface in keys}


def _secret(plan: Plan, environ: Mapping[str, str], name: str) -> str | None:
    """Return the value of the variable that a file names, or of the fact's own variable."""
    key = BY_NAME[name].key
    named = plan.value(key)
    if isinstance(named, str):
        return _required_variable(plan, environ, key, named)
    return environ.get(variable(name))


def _wrapped(secret: str | None) -> Secret | None:
    return Secret(secret) if secret else None


def _required_variable(plan: Plan, environ: Mapping[str, str], key: str, named: str) -> str:
    value = environ.get(named)
    if not value:
        source = plan.facts[key].source
        raise ConfigurationError(
            f"{source} names the environment variable {named}, which is not set.",
            source=source,
            key=key,
        )
    return value


def lines(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    """Return a plan in words: one line for the target, and one for each of its facts."""
    name = plan.kind if plan.name == plan.kind else f"{plan.name}, {plan.kind},"
    if plan.in_process:
        return [f"platform: {name} in this process"]
    url = plan.facts["url"]
    facts = [
        f"  {key.replace('_', ' ')}: {_value(fact.value)} ({fact.source})"
        for key, fact in plan.facts.items()
        if key not in ("kind", "url")
    ]
    usual = (fact.variable for fact in FACTS if fact.secret)
    variables = [key for key in (*usual, *map(variable_of, KEYED)) if environ.get(key)]
    unused = "not used for this platform; set DOUBLECHECK_URL to use them"
    return [
        f"platform: {name} at {url.value} ({url.source})",
        *facts,
        *([f"  secrets: {', '.join(variables)}"] if variables else []),
        *([f"  not used: {', '.join(plan.unused)} ({unused})"] if plan.unused else []),
    ]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {variable}" for key, variable in value.items())
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    return str(value).lower() if isinstance(value, bool) else str(value)
