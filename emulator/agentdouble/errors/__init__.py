"""Every exception that agentdouble raises on purpose.

::

    AgentDoubleError
    ├── SettingsError             a setting that is unknown or has a wrong value
    │   └── DeclarationError      a runtime that cannot be what its table says
    ├── LedgerError               an unknown, or an alternative of one, that does not exist
    │   └── ProfileError          a profile that cannot be read, or names what does not exist
    ├── MissingExtraError         a part of agentdouble whose extra is not installed
    ├── NotRunningError           a double is asked for what only a running one does
    ├── NotBuiltError             something the platform has and the double does not have yet
    ├── FaultError                a fault that cannot be armed, or is not armed
    ├── AddressInUseError         a port that another program listens on
    ├── StateError                a state that cannot be opened, read or written
    ├── ApplicationLoadError      an application that cannot be imported or served
    ├── DecorationError           a function that breaks the decorator contract (also a TypeError)
    ├── ToolError                 an MCP tool that cannot be called as it was, or returned nonsense
    │   ├── ToolArgumentsError
    │   └── ToolResultError
    ├── CardError                 an agent card that lacks what a card must have (also a ValueError)
    ├── TurnTimeoutError          an A2A executor whose turn has not ended in time
    ├── ActionError               a control-plane action that is refused, with the platform's code
    │   └── ClientTokenError      another request had its ClientToken
    ├── SignatureError            a control-plane request whose signature does not verify
    ├── EnvelopeError             an answer that is not the envelope of section 2.8
    ├── PlatformError             an answer that is the platform's error envelope
    ├── ApiError                  a request to the API server that is refused, with its status
    │   └── SessionNotFoundError
    ├── AgentError                an agent, or an agents directory, that does not do its part
    │   ├── AgentNotFoundError
    │   ├── AgentLoadError
    │   ├── AgentYieldError       (also a TypeError)
    │   └── RunEndedError
    ├── DefinitionError           a definition of an HTTP API that cannot become tools
    ├── ToolCallError             a tool that calls an HTTP API did not reach its end
    ├── RunCodeError              run_code lacks what it needs
    │   ├── ToolIdMissingError
    │   ├── CredentialsMissingError
    │   └── PlatformUnreachableError
    ├── McpServiceError           an MCP service that cannot be had, or cannot do what was asked
    │   ├── UnknownServiceError
    │   ├── UnknownToolsetError
    │   ├── ServiceUnansweredError  a service of a toolset does not answer
    │   ├── ServiceNameError      a name that is no segment of a path
    │   ├── ServiceNameTakenError
    │   ├── ServiceKeyError       a key that cannot be sent, or that is not there
    │   ├── BackendError          something that no service can stand in front of
    │   └── BackendLostError      what stands behind a service is not there, or breaks off
    ├── AnswerLostError           a server behind this one is not there, or breaks off
    ├── HostingError              a runtime cannot be had, or cannot do what was asked
    │   ├── AccessError           a caller of a runtime that its gateway does not let in
    │   ├── AuthorizerError       an authentication of callers that cannot be
    │   ├── IssuerError           an issuer of tokens that does not do its part
    │   ├── RuntimeNameError      a name that is no segment of a path, or is taken
    │   ├── RuntimeStartError     an instance that did not start or never got ready
    │   ├── InstanceLostError     an instance is not there any more, or breaks off
    │   ├── RuntimeBusyError      no instance is free, and the queue or the patience is at its end
    │   ├── RuntimeEndedError     it was deleted, or the double stopped, meanwhile
    │   ├── UnknownInstanceError
    │   ├── UnknownVersionError
    │   ├── LogQueryError         a parameter of a question about logs that is wrong
    │   └── UnknownRuntimeError
    ├── LiveError                 what a session's code says cannot be listened to as was asked
    │   ├── LiveRequestError      a request for that, or for completion, is wrong
    │   └── TooManyListenersError
    └── SandboxError              a session instance cannot do what was asked
        ├── UnknownLanguageError
        ├── DirectoryError        code cannot run in the directory that was asked for
        ├── UnknownToolError
        ├── ToolNameTakenError
        ├── FixedToolError
        ├── UnknownSessionError
        ├── TooManyInstancesError
        ├── ResourceExhaustedError   the machine has no more of what a session takes
        ├── TooManyNotebooksError
        ├── InstanceBusyError
        ├── InstancePausedError
        ├── InstanceEndedError
        ├── KernelStartError
        ├── WorkbenchError
        ├── BrowserError          a session's browser did not start or has ended
        ├── BrowserMissingError   no Chromium, or no Playwright, on this machine
        ├── TooManyBrowsersError
        └── PageError             a page in a browser did not do what was asked

Messages are for people: what happened, where, what to do. What a program needs is in
the attributes.
"""

from __future__ import annotations

from agentdouble.errors.api_server import (
    AgentError,
    AgentLoadError,
    AgentNotFoundError,
    AgentYieldError,
    ApiError,
    RunEndedError,
    SessionNotFoundError,
)
from agentdouble.errors.apps import (
    ApplicationLoadError,
    CardError,
    DecorationError,
    ToolArgumentsError,
    ToolError,
    ToolResultError,
    TurnTimeoutError,
)
from agentdouble.errors.base import AgentDoubleError
from agentdouble.errors.control_plane import (
    ActionError,
    ClientTokenError,
    EnvelopeError,
    PlatformError,
    SignatureError,
)
from agentdouble.errors.ground import (
    AddressInUseError,
    AnswerLostError,
    DeclarationError,
    FaultError,
    LedgerError,
    MissingExtraError,
    NotBuiltError,
    NotRunningError,
    ProfileError,
    SettingsError,
    StateError,
)
from agentdouble.errors.mcp_services import (
    BackendError,
    BackendLostError,
    DefinitionError,
    McpServiceError,
    ServiceKeyError,
    ServiceNameError,
    ServiceNameTakenError,
    ServiceUnansweredError,
    ToolCallError,
    UnknownServiceError,
    UnknownToolsetError,
)
from agentdouble.errors.run_code import (
    CredentialsMissingError,
    PlatformUnreachableError,
    RunCodeError,
    ToolIdMissingError,
)
from agentdouble.errors.runtimes import (
    AccessError,
    AuthorizerError,
    HostingError,
    InstanceLostError,
    IssuerError,
    LogQueryError,
    RuntimeBusyError,
    RuntimeEndedError,
    RuntimeNameError,
    RuntimeStartError,
    UnknownInstanceError,
    UnknownRuntimeError,
    UnknownVersionError,
)
from agentdouble.errors.sandbox import (
    BrowserError,
    BrowserMissingError,
    DirectoryError,
    FixedToolError,
    InstanceBusyError,
    InstanceEndedError,
    InstancePausedError,
    KernelStartError,
    LiveError,
    LiveRequestError,
    PageError,
    ResourceExhaustedError,
    SandboxError,
    ToolNameTakenError,
    TooManyBrowsersError,
    TooManyInstancesError,
    TooManyListenersError,
    TooManyNotebooksError,
    UnknownLanguageError,
    UnknownSessionError,
    UnknownToolError,
    WorkbenchError,
)

__all__ = [
    "AccessError",
    "ActionError",
    "AddressInUseError",
    "AgentDoubleError",
    "AgentError",
    "AgentLoadError",
    "AgentNotFoundError",
    "AgentYieldError",
    "AnswerLostError",
    "ApiError",
    "ApplicationLoadError",
    "AuthorizerError",
    "BackendError",
    "BackendLostError",
    "BrowserError",
    "BrowserMissingError",
    "CardError",
    "ClientTokenError",
    "CredentialsMissingError",
    "DeclarationError",
    "DecorationError",
    "DefinitionError",
    "DirectoryError",
    "EnvelopeError",
    "FaultError",
    "FixedToolError",
    "HostingError",
    "InstanceBusyError",
    "InstanceEndedError",
    "InstanceLostError",
    "InstancePausedError",
    "IssuerError",
    "KernelStartError",
    "LedgerError",
    "LiveError",
    "LiveRequestError",
    "LogQueryError",
    "McpServiceError",
    "MissingExtraError",
    "NotBuiltError",
    "NotRunningError",
    "PageError",
    "PlatformError",
    "PlatformUnreachableError",
    "ProfileError",
    "ResourceExhaustedError",
    "RunCodeError",
    "RunEndedError",
    "RuntimeBusyError",
    "RuntimeEndedError",
    "RuntimeNameError",
    "RuntimeStartError",
    "SandboxError",
    "ServiceKeyError",
    "ServiceNameError",
    "ServiceNameTakenError",
    "ServiceUnansweredError",
    "SessionNotFoundError",
    "SettingsError",
    "SignatureError",
    "StateError",
    "TooManyBrowsersError",
    "TooManyInstancesError",
    "TooManyListenersError",
    "TooManyNotebooksError",
    "ToolArgumentsError",
    "ToolCallError",
    "ToolError",
    "ToolIdMissingError",
    "ToolNameTakenError",
    "ToolResultError",
    "TurnTimeoutError",
    "UnknownInstanceError",
    "UnknownLanguageError",
    "UnknownRuntimeError",
    "UnknownServiceError",
    "UnknownSessionError",
    "UnknownToolError",
    "UnknownToolsetError",
    "UnknownVersionError",
    "WorkbenchError",
]

for _name in __all__:  # a traceback names the exception by where users import it from
    globals()[_name].__module__ = __name__
