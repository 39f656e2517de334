"""The environment variables that tell clients where a platform is.

The ``PLATFORM`` names are the specification's neutral ones. Real clients read the others, so
``agentdouble env --for NAME`` points an unmodified client at the double.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
OWN_ADDRESS = "AGENTDOUBLE_URL"  # of the double for the commands of ``agentdouble``
TOKEN = "AGENTDOUBLE_TOKEN"  # noqa: S105 (the name of a variable)
UNLISTED = "AGENTDOUBLE_UNLISTED"  # set if a served double belongs to one test run
TOOL_ID = "PLATFORM_TOOL_ID"
TOOL_HOST = "PLATFORM_TOOL_HOST"
TOOL_SCHEME = "PLATFORM_TOOL_SCHEME"
TOOL_REGION = "PLATFORM_TOOL_REGION"
TOOL_TTL = "PLATFORM_TOOL_TTL"
ACCESS_KEY = "PLATFORM_ACCESS_KEY"
SECRET_KEY = "PLATFORM_SECRET_KEY"  # noqa: S105 (the name of a variable)
CA_FILE = "SSL_CERT_FILE"
_REQUESTS_CA_FILE = "REQUESTS_CA_BUNDLE"

# The command line of agentkit also calls these; the double refuses their actions by name.
_OTHER_SERVICES = ("AGENT_IDENTITY", "CP", "CR", "IAM", "STS")

CLIENTS = ("platform", "veadk", "agentkit", "model", "jupyter")

_MODEL = "scripted"  # for clients that need the name of a model
_EMBEDDING_SIZE = 1536  # numbers of its vectors, in OpenAI's wire form
# The beginnings of the variables with which each vendor's clients, and veadk, find a model.
_VENDORS = (("OPENAI_",), ("GEMINI_", "GOOGLE_"), ("API_KEY", "MODEL_AGENT_", "MODEL_EMBEDDING_"))
_given: set[str] = set()  # what ``give`` has set in this process


@dataclass(frozen=True)
class DoubleConnection:
    """The data that a client needs to call a platform's control plane.

    ``url`` has no path. ``ca_file`` is the file that a client trusts if the double serves https.
    ``token`` is the secret of a double's own routes.
    """

    url: str
    tool_id: str
    access_key: str
    secret_key: str
    region: str
    ca_file: str | None = None
    token: str = field(default="", repr=False)


def variables(connection: DoubleConnection, client: str = "platform") -> Mapping[str, str]:
    """Return the environment variables of a client; ``client`` is one of ``CLIENTS``.

    Raises ValueError, which lists the known clients, for another client.
    """
    trusted = connection.ca_file
    trust = {} if trusted is None else {CA_FILE: trusted, _REQUESTS_CA_FILE: trusted}
    return {**_named(connection, client), **trust}


def for_hosted_code(connection: DoubleConnection) -> Mapping[str, str]:
    """Return the variables of hosted code: the platform without the token, and its model."""
    own = variables(replace(connection, token=""))
    return {**own, **(_model(connection) if connection.token else {})}


def besides(given: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return variables without those of a vendor of models that ``names`` has variables of.

    Code with a key or an address of its own uses that, and never half of the double's.
    """
    listed = tuple(names)
    taken = [prefixes for prefixes in _VENDORS if any(name.startswith(prefixes) for name in listed)]
    return {
        name: value
        for name, value in given.items()
        if not any(name.startswith(prefixes) for prefixes in taken)
    }


def give(given: Mapping[str, str]) -> None:
    """Set variables for code that this process hosts, except as ``besides`` says."""
    own = besides(given, os.environ.keys() - _given)
    os.environ.update(own)
    _given.update(own)


def withdraw(names: Iterable[str]) -> None:
    """Unset what ``give`` has set of the vendors that ``names`` has variables of."""
    kept = besides(dict.fromkeys(_given, ""), names)
    for name in _given - kept.keys():
        os.environ.pop(name, None)
    _given.intersection_update(kept)


def url(variables: Mapping[str, str]) -> str:
    """Return the address that the variables of the client ``platform`` name."""
    return f"{variables[TOOL_SCHEME]}://{variables[TOOL_HOST]}"


def _named(connection: DoubleConnection, client: str) -> Mapping[str, str]:
    scheme, host = urlsplit(connection.url)[:2]
    key, secret = connection.access_key, connection.secret_key
    if client == "platform":
        return {
            TOOL_ID: connection.tool_id,
            TOOL_HOST: host,
            TOOL_SCHEME: scheme,
            TOOL_REGION: connection.region,
            ACCESS_KEY: key,
            SECRET_KEY: secret,
            **({TOKEN: connection.token} if connection.token else {}),
        }
    volcengine = {"VOLCENGINE_ACCESS_KEY": key, "VOLCENGINE_SECRET_KEY": secret}
    if client == "veadk":
        return {
            "AGENTKIT_TOOL_ID": connection.tool_id,
            "AGENTKIT_TOOL_HOST": host,
            "AGENTKIT_TOOL_SCHEME": scheme,
            "AGENTKIT_TOOL_REGION": connection.region,
            "AGENTKIT_TOOL_SERVICE_CODE": "agentkit",
            **volcengine,
        }
    if client == "agentkit":
        others = {f"VOLCENGINE_{name}_HOST": host for name in _OTHER_SERVICES}
        others |= {f"VOLCENGINE_{name}_SCHEME": scheme for name in _OTHER_SERVICES}
        return {
            "VOLCENGINE_AGENTKIT_HOST": host,
            "VOLCENGINE_AGENTKIT_SCHEME": scheme,
            "VOLCENGINE_AGENTKIT_REGION": connection.region,
            **others,
            **volcengine,
        }
    if client == "jupyter" and connection.token:
        key = jupyter_key(connection.token)
        url = f"{connection.url}/jupyter/token/{key}"
        return {"JUPYTER_GATEWAY_URL": url, "JUPYTER_GATEWAY_AUTH_TOKEN": key}
    if client == "model" and connection.token:  # only a double has the endpoint
        return _model(connection)
    raise ValueError(f"There is no client {client!r}; there are {', '.join(CLIENTS)}.")


def model_key(token: str) -> str:
    """Return the key of the model endpoint, from which nobody can learn the token."""
    return f"sk-{_derived(token, 'model')}"


def jupyter_key(token: str) -> str:
    """Return the key of the Jupyter server; it is lower-case, as jupyter_server makes addresses."""
    return _derived(token, "jupyter")


def _derived(token: str, purpose: str) -> str:
    return hmac.new(token.encode(), purpose.encode(), hashlib.sha256).hexdigest()[:32]


def _model(connection: DoubleConnection) -> Mapping[str, str]:
    """Return the variables of the SDKs of OpenAI and Gemini, and of veadk."""
    url, key = f"{connection.url}/model", model_key(connection.token)
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",  # litellm reads this and GEMINI_API_BASE
        "OPENAI_API_KEY": key,
        "GEMINI_API_BASE": f"{url}/v1beta",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GOOGLE_API_KEY": key,
        "GEMINI_API_KEY": key,
        "GOOGLE_GENAI_USE_ENTERPRISE": "false",
        "GOOGLE_GENAI_USE_VERTEXAI": "false",  # what older versions of google-genai read
        "MODEL_AGENT_PROVIDER": "openai",
        "MODEL_AGENT_NAME": _MODEL,
        "MODEL_AGENT_API_BASE": f"{url}/v1",
        "MODEL_AGENT_API_KEY": key,
        "MODEL_EMBEDDING_NAME": _MODEL,
        "MODEL_EMBEDDING_DIM": str(_EMBEDDING_SIZE),
        "MODEL_EMBEDDING_API_BASE": f"{url}/v1",
        "MODEL_EMBEDDING_API_KEY": key,
        "API_KEY": key,
    }
