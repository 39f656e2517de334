"""A plan as a target, a target as a plan, and a plan as JSON for another process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentdouble.core.environment import TOKEN
from agentdouble.core.signing import Credentials
from agentdouble.core.urls import is_https
from doublecheck.core.notebook_repr import Secret
from doublecheck.errors import ConfigurationError, TargetError
from doublecheck.target.config_files import KEYED, read_value
from doublecheck.target.facts import BY_KEY, BY_NAME, FACTS, Surface, variable
from doublecheck.target.plan import BY_CALLER, Plan, SourcedValue, variable_of
from doublecheck.target.target import Target

# the fields that a target stores unchanged; others are secrets, or say how a target is made
_FIELDS = {
    fact.key: "offered" if fact.name == "offers" else fact.name
    for fact in FACTS
    if fact.type in ("address", "count", "file", "flag", "level", "number", "surfaces", "text")
}
_ADDRESSES = tuple(fact.key for fact in FACTS if fact.type == "address")


def target_of_plan(plan: Plan) -> Target:
    """Return the target that a plan describes. The plan must have an address.

    Raises TargetError if the target is unusable, or if a file names a variable that is not set.
    """
    fields = {field: plan.value(key) for key, field in _FIELDS.items() if key in plan.facts}
    addresses = (plan.value(key) or "" for key in _ADDRESSES)
    if not any(map(is_https, addresses)):
        fields.pop("ca_file", None)  # SSL_CERT_FILE is often set, and its file may be unreadable
    return Target(
        **fields,
        kind=plan.kind,
        name=plan.name,
        credentials=_pair(plan, ""),
        restricted=_pair(plan, "restricted_"),
        api_key=_wrapped(_secret(plan, "api_key")),
        token=_wrapped(plan.variables.get(TOKEN)),
        api_keys=_api_keys(plan),
        other_key=_wrapped(_secret(plan, "other_api_key")),
    )


def _pair(plan: Plan, prefix: str) -> Credentials | None:
    access_key = _secret(plan, f"{prefix}access_key")
    secret_key = _secret(plan, f"{prefix}secret_key")
    return Credentials(access_key, secret_key) if access_key and secret_key else None


def _api_keys(plan: Plan) -> dict[Surface, Secret]:
    key = BY_NAME["api_key"].key
    found = ((surface, plan.variables.get(variable_of(surface))) for surface in KEYED)
    keys = {surface: value for surface, value in found if value}
    if isinstance(named := plan.value(key), Mapping):
        for surface, name in named.items():
            keys[surface] = _required_variable(plan, key, name)
    return {surface: Secret(keys[surface]) for surface in KEYED if surface in keys}


def _secret(plan: Plan, name: str) -> str | None:
    """Return the value of the variable that a file names, or of the fact's own variable."""
    key = BY_NAME[name].key
    named = plan.value(key)
    if isinstance(named, str):
        return _required_variable(plan, key, named)
    return plan.variables.get(variable(name))


def _wrapped(secret: str | None) -> Secret | None:
    return Secret(secret) if secret else None


def _required_variable(plan: Plan, key: str, named: str) -> str:
    value = plan.variables.get(named)
    if not value:
        source = plan.facts[key].source
        raise ConfigurationError(
            f"{source} names the environment variable {named}, which is not set."
            f"{_others_missing(plan, named)}",
            source=source,
            key=key,
        )
    return value


def _others_missing(plan: Plan, named: str) -> str:
    """Return the other variables that a target's table names and that are not set, as a sentence."""
    values = [plan.value(fact.key) for fact in FACTS if fact.secret]
    names = [name for value in values for name in _names(value)]
    missing = sorted({name for name in names if not plan.variables.get(name)} - {named})
    return f" Nor are these, which it needs too: {', '.join(missing)}." if missing else ""


def _names(value: Any) -> tuple[str, ...]:
    """Return the variables that a key of a table names: one, one for each surface, or none."""
    if isinstance(value, Mapping):
        return tuple(value.values())
    return (value,) if isinstance(value, str) else ()


def plan_of_target(target: Target) -> Plan:
    """Return the plan that describes a target. Raise TargetError for a key pair with a token."""
    if target.credentials is not None and target.credentials.session_token is not None:
        raise TargetError(
            f"The checks cannot use the session token of the key pair for {target.url}; "
            "pass a permanent key pair."
        )
    values = {key: getattr(target, field) for key, field in _FIELDS.items()}
    if target.offers_assumed:
        del values["offers"]
    values = {key: value for key, value in values.items() if value}
    facts = {key: SourcedValue(value, BY_CALLER) for key, value in values.items()}
    options = {
        BY_KEY[key].name: ",".join(sorted(value)) if isinstance(value, frozenset) else value
        for key, value in values.items()
        if BY_KEY[key].help
    }
    return Plan(
        target.name,
        target.kind,
        facts,
        BY_CALLER,
        variables=dict(_variables(target)),
        options={"target": target.kind, **options},
    )


def _variables(target: Target) -> Iterator[tuple[str, str]]:
    pairs = (("", target.credentials), ("restricted_", target.restricted))
    for prefix, pair in pairs:
        if pair is not None:
            yield variable(f"{prefix}access_key"), pair.access_key
            yield variable(f"{prefix}secret_key"), pair.secret_key
    named = {
        variable("api_key"): target.api_key,
        variable("other_api_key"): target.other_key,
        TOKEN: target.token,
        **{variable_of(surface): key for surface, key in target.api_keys.items()},
    }
    for name, key in named.items():
        if key is not None:
            yield name, key.reveal()


def to_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON, with its secrets."""
    values = {key: fact.value for key, fact in plan.facts.items()}
    return {
        "name": plan.name,
        "kind": plan.kind,
        "facts": {
            key: [sorted(value) if isinstance(value, frozenset) else value, plan.facts[key].source]
            for key, value in values.items()
        },
        "chosen_by": plan.chosen_by,
        "unused": [*plan.unused],
        "variables": dict(plan.variables),
        "options": dict(plan.options),
    }


def from_json(document: Mapping[str, Any]) -> Plan:
    """Return the plan that ``to_json`` wrote."""
    facts = {
        key: SourcedValue(read_value(BY_KEY[key], value), source)
        for key, (value, source) in document["facts"].items()
    }
    return Plan(**{**document, "facts": facts})
