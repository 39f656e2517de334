// A conversation of the TypeScript SDK, @modelcontextprotocol/sdk 1.x: the versions with sessions.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const WATCHED = "test://watched-resource";

export async function converse(facts) {
  const { application, runtime, front, service, refused } = facts.mcp;
  const outcome = {};
  const user = { logged: [], progress: [], changed: [] };
  await using(application, user, async (client) => {
    outcome.tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
    outcome.call = text(await client.callTool({ name: "add", arguments: { a: 2, b: 3 } }));
    outcome.failure = error(await client.callTool({ name: "fail" }));
  });
  await using(runtime, user, async (client) => {
    outcome.runtime = text(await client.callTool({ name: "add", arguments: { a: 2, b: 3 } }));
  });
  await using(front, user, async (client) => {
    const called = { name: "add", arguments: { a: 2, b: 3 } };
    outcome.front = text(await client.callTool(called));
  });
  await using(service, user, (client) => useService(client, user, outcome));
  outcome.refusal = await isRefused(refused, user);
  return { "with sessions": outcome };
}

async function useService(client, user, outcome) {
  outcome.error = error(await client.callTool({ name: "test_error_handling" }));
  const { content } = await client.callTool({ name: "test_multiple_content_types" });
  outcome.contents = content.map((content) => content.type);
  const onprogress = ({ progress }) => user.progress.push(progress);
  await client.callTool({ name: "test_tool_with_progress" }, undefined, { onprogress });
  outcome.progress = user.progress;
  await client.setLoggingLevel("info");
  await client.callTool({ name: "test_tool_with_logging" });
  outcome.logging = user.logged;
  const who = { name: "test_elicitation", arguments: { message: "Who?" } };
  outcome.elicitation = text(await client.callTool(who));
  const where = { name: "test_sampling", arguments: { prompt: "Where?" } };
  outcome.sampling = text(await client.callTool(where));
  outcome.resources = (await client.listResources()).resources.map((resource) => resource.uri);
  const { resourceTemplates } = await client.listResourceTemplates();
  outcome.templates = resourceTemplates.map((template) => template.name);
  outcome.read = (await client.readResource({ uri: "test://template/7/data" })).contents[0].text;
  outcome.prompts = (await client.listPrompts()).prompts.length;
  const name = "test_prompt_with_arguments";
  const prompt = await client.getPrompt({ name, arguments: { arg1: "a", arg2: "b" } });
  outcome.prompt = prompt.messages[0].content.text;
  const ref = { type: "ref/prompt", name };
  const completed = await client.complete({ ref, argument: { name: "arg1", value: "par" } });
  outcome.completion = completed.completion.values;
  await client.subscribeResource({ uri: WATCHED });
  while (user.changed.length === 0) await client.callTool({ name: "change_watched_resource" });
  outcome.subscription = user.changed[0];
}

async function using({ url, headers }, user, talk) {
  const capabilities = { sampling: {}, elicitation: {} };
  const client = new Client({ name: "client", version: "1" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    const fields = Object.keys(params.requestedSchema.properties);
    const content = Object.fromEntries(fields.map((field) => [field, "ann"]));
    return { action: "accept", content };
  });
  client.setRequestHandler(CreateMessageRequestSchema, () => {
    return { role: "assistant", content: { type: "text", text: "Paris" }, model: "a-model" };
  });
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    user.logged.push(params.data);
  });
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
    user.changed.push(params.uri);
  });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  await talk(client);
  await transport.terminateSession();
  await client.close();
}

async function isRefused(server, user) {
  try {
    await using(server, user, (client) => client.listTools());
  } catch (problem) {
    return /401|wrong API key/.test(`${problem}`) || `${problem}`;
  }
  return false;
}

function text(result) {
  return result.isError ? "an error" : result.content[0].text;
}

function error(result) {
  return result.isError ? result.content[0].text : "no error";
}
