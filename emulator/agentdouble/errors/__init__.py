"""Every exception that agentdouble raises on purpose.

::

    AgentDoubleError
    ├── SettingsError             a setting that is unknown or has a wrong value
    │   └── DeclarationError      a runtime that cannot be what its table says
    ├── LedgerError               an unknown, or an alternative of one, that does not exist
    │   └── ProfileError          a profile that cannot be read, or has a name that does not exist
    ├── MissingExtraError         a part of agentdouble whose extra is not installed
    ├── NotRunningError           a call that needs a running double
    ├── NotBuiltError             a part of the platform that the double does not have yet
    ├── FaultError                a fault that cannot be armed, or is not armed
    ├── AddressInUseError         a port that another program listens on
    ├── PartError                 a part that a reset should keep, and that no double has
    ├── StateError                a state that cannot be opened, read or written
    ├── ApplicationLoadError      an application that cannot be imported or served
    ├── DecorationError           a function that breaks the decorator contract (also a TypeError)
    ├── CardError                 an agent card that lacks required fields (also a ValueError)
    ├── TurnTimeoutError          an A2A executor whose turn has not ended in time
    ├── ActionError               a control-plane action that is refused, with the platform's code
    ├── SignatureError            a control-plane request whose signature does not verify
    ├── EnvelopeError             an answer that is not the envelope of section 2.8
    ├── PlatformError             an answer that is the platform's error envelope
    ├── ModelError                a request to the model, or a script for it, that is refused
    ├── ApiError                  a request to the API server that is refused, with its status
    │   └── SessionNotFoundError
    ├── AgentError                an agent or an agents directory that breaks its contract
    │   ├── AgentNotFoundError
    │   ├── AgentLoadError
    │   ├── AgentYieldError       (also a TypeError)
    │   └── RunEndedError
    ├── DefinitionError           a definition of an HTTP API that cannot become tools
    ├── ToolCallError             a tool that calls an HTTP API did not finish
    ├── RunCodeError              run_code lacks what it needs
    │   ├── ToolIdMissingError
    │   ├── CredentialsMissingError
    │   └── PlatformUnreachableError
    ├── McpServiceError           an MCP service that is not available or cannot handle a request
    │   ├── UnknownServiceError
    │   ├── ServiceNameError      a name that is not a valid path segment
    │   ├── ServiceNameTakenError
    │   ├── ServiceKeyError       a key that cannot be sent, or does not exist
    │   └── BackendError          a backend for which no service can be made
    ├── AnswerLostError           a server behind this one does not answer, or breaks off
    ├── HostingError              a runtime is not available or cannot handle a request
    │   ├── AccessError           a caller that a runtime's gateway refuses
    │   ├── IssuerError           an issuer of tokens that failed
    │   ├── RuntimeNameError      a name that is not a valid path segment, or is in use
    │   ├── RuntimeStartError     an instance that did not start or never became ready
    │   ├── InstanceLostError     an instance does not answer any more, or breaks off
    │   ├── RuntimeBusyError      no instance is free, and the queue is full or the wait too long
    │   ├── RuntimeEndedError     the runtime was deleted, or the double stopped, meanwhile
    │   ├── UnknownInstanceError
    │   ├── UnknownVersionError
    │   ├── LogQueryError         a wrong parameter of a log query
    │   └── UnknownRuntimeError
    ├── LiveError                 the live output of a session cannot be followed as requested
    │   └── TooManyListenersError
    └── SandboxError              a session instance cannot handle a request
        ├── DirectoryError        code cannot run in the given directory
        ├── UnknownToolError
        ├── UnknownSessionError
        ├── TooManyInstancesError
        ├── ResourceExhaustedError   the machine has not enough of a resource that a session needs
        ├── InstanceEndedError
        │   └── CodeNotBegunError
        ├── SnapshotRefusedError  a session's snapshot cannot be taken, or not be resumed now
        ├── KernelStartError
        ├── WorkbenchError
        ├── BrowserError          a session's browser did not start or has ended
        └── PageError             a page in a browser could not do an action

Messages are for people: what happened, where, what to do. Programs use the attributes.
"""

from __future__ import annotations

from agentdouble.errors.general import *
from agentdouble.errors.general import AgentDoubleError as AgentDoubleError
from agentdouble.errors.runtimes import *
from agentdouble.errors.sandbox import *

__all__ = [  # written out for tools that read code without running it
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
    "BackendError",
    "BrowserError",
    "CardError",
    "CodeNotBegunError",
    "CredentialsMissingError",
    "DeclarationError",
    "DecorationError",
    "DefinitionError",
    "DirectoryError",
    "EnvelopeError",
    "FaultError",
    "HostingError",
    "InstanceEndedError",
    "InstanceLostError",
    "IssuerError",
    "KernelStartError",
    "LedgerError",
    "LiveError",
    "LogQueryError",
    "McpServiceError",
    "MissingExtraError",
    "ModelError",
    "NotBuiltError",
    "NotRunningError",
    "PageError",
    "PartError",
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
    "SessionNotFoundError",
    "SettingsError",
    "SignatureError",
    "SnapshotRefusedError",
    "StateError",
    "TooManyInstancesError",
    "TooManyListenersError",
    "ToolCallError",
    "ToolIdMissingError",
    "TurnTimeoutError",
    "UnknownInstanceError",
    "UnknownRuntimeError",
    "UnknownServiceError",
    "UnknownSessionError",
    "UnknownToolError",
    "UnknownVersionError",
    "WorkbenchError",
]

for _name in __all__:  # a traceback shows the module from which users import the exception
    globals()[_name].__module__ = __name__
