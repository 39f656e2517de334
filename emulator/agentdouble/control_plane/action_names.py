"""The names of the platform's actions, as its real clients know them.

Actions of this list that the double lacks are refused by name; any other action is unknown
(CTL-06).
"""

from __future__ import annotations

# Other services, by their names in signatures. The platform's command line asks them
# for credentials, accounts, images and builds; their actions are refused by name, too.
OTHER_SERVICES = frozenset(("cp", "cr", "iam", "id", "sts"))

OF_THE_PLATFORM = frozenset(
    (
        "InvokeTool",
        # Tools and sessions
        "CreateTool",
        "DeleteTool",
        "GetTool",
        "ListTools",
        "UpdateTool",
        "CreateSession",
        "DeleteSession",
        "GetSession",
        "ListSessions",
        "PauseSession",
        "ResumeSession",
        "SetSessionTtl",
        "GetSessionLogs",
        "AsyncExecCommand",
        "ViewAsyncCommand",
        "ListToolTypes",
        "CreateSessionSnapshot",
        "DeleteSessionSnapshot",
        "GetSessionSnapshot",
        "ListSessionSnapshots",
        "ResumeSessionFromSnapshot",
        # Hosts of one's own for sandboxes
        "CreateEnvironmentResource",
        "DeleteEnvironmentResource",
        "GetEnvironmentResource",
        "ListEnvironmentResources",
        "UpdateEnvironmentResource",
        # MCP services and toolsets
        "CreateMCPService",
        "DeleteMCPService",
        "GetMCPService",
        "ListMCPServices",
        "UpdateMCPService",
        "CreateMCPToolset",
        "DeleteMCPToolset",
        "GetMCPToolset",
        "ListMCPToolsets",
        "UpdateMCPToolset",
        "GetMCPTools",
        "ListMCPTools",
        "UpdateMCPTools",
        # Runtimes
        "CreateRuntime",
        "DeleteRuntime",
        "GetRuntime",
        "ListRuntimes",
        "ReleaseRuntime",
        "UpdateRuntime",
        "GetRuntimeVersion",
        "ListRuntimeVersions",
        "ListRuntimeInstances",
        "GetRuntimeInstanceLogs",
        "GetRuntimeCozeToken",
        "ListRuntimeCrRegistries",
        # Skills
        "CreateSkill",
        "DeleteSkill",
        "GetSkill",
        "GetSkillInfo",
        "GetSkillVersion",
        "ListSkills",
        "ListSkillVersions",
        "UpdateSkill",
        "CreateSkillSpace",
        "DeleteSkillSpace",
        "GetSkillSpace",
        "ListSkillSpaces",
        "ListSkillSpacesBySkill",
        "UpdateSkillSpace",
        "ListSkillsBySkillSpace",
        "ListSkillsBySpaceId",
        "ListSkillsBySpaceName",
        "PublishSkillToSkillSpace",
        "RemoveSkillFromSkillSpace",
        "GenTempTosObjectUrl",
        # Memory
        "AddMemoryCollection",
        "CreateMemoryCollection",
        "DeleteMemoryCollection",
        "GetMemoryCollection",
        "GetMemoryConnectionInfo",
        "ListMemoryCollections",
        "UpdateMemoryCollection",
        # Knowledge
        "AddKnowledgeBase",
        "DeleteKnowledgeBase",
        "GetKnowledgeBase",
        "GetKnowledgeConnectionInfo",
        "ListKnowledgeBases",
        "UpdateKnowledgeBase",
        # The model gateway
        "CreateModelGateway",
        "ListModelGateways",
        "CreateModelGatewayConsumer",
        "DeleteModelGatewayConsumer",
        "GetModelGatewayConsumer",
        "ListModelGatewayConsumers",
        "UpdateModelGatewayConsumer",
        "CreateModelGatewayProvider",
        "DeleteModelGatewayProvider",
        "GetModelGatewayProvider",
        "ListModelGatewayProviders",
        "UpdateModelGatewayProvider",
        # A2A
        "CreateA2aAgent",
        "ListA2aSpaces",
    )
)
