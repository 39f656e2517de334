"""A tool that asks for a credential."""

from fastapi.openapi.models import OAuth2, OAuthFlowAuthorizationCode, OAuthFlows
from google.adk.agents import LlmAgent
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.tools import ToolContext
from scripted import once

SCHEME = OAuth2(
    flows=OAuthFlows(
        authorizationCode=OAuthFlowAuthorizationCode(
            authorizationUrl="https://example.com/auth",
            tokenUrl="https://example.com/token",
            scopes={"read": "Read"},
        )
    )
)
CREDENTIAL = AuthCredential(
    auth_type=AuthCredentialTypes.OAUTH2,
    oauth2=OAuth2Auth(client_id="id", client_secret="secret", state="fixed"),
)


def read(tool_context: ToolContext) -> dict:
    """Read a file of the user."""
    config = AuthConfig(auth_scheme=SCHEME, raw_auth_credential=CREDENTIAL, credential_key="key")
    given = tool_context.get_auth_response(config)
    if given is None:
        tool_context.request_credential(config)
        return {"pending": True}
    return {"token": given.oauth2.access_token}


root_agent = LlmAgent(name="reader", model=once("read"), tools=[read])
