// A conversation of the TypeScript SDK, @modelcontextprotocol/client 2.x, in both eras.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const WATCHED = "test://watched-resource";
const ROUNDS = "test_input_required_result_";
const ERAS = {
  "with sessions": {
    mode: "legacy",
    elicitation: { name: "test_elicitation", arguments: { message: "Who?" } },
    sampling: { name: "test_sampling", arguments: { prompt: "Where?" } },
  },
  "without sessions": {
    mode: "auto",
    elicitation: { name: `${ROUNDS}elicitation` },
    sampling: { name: `${ROUNDS}sampling` },
  },
};

export async function converse(facts) {
  const outcome = {};
  for (const [name, era] of Object.entries(ERAS)) outcome[name] = await converseIn(era, facts.mcp);
  return outcome;
}

async function converseIn(era, { application, runtime, front, service, refused }) {
  const outcome = {};
  const user = { logged: [], progress: [], changed: [] };
  await using(application, era, user, async (client) => {
    outcome.tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
    outcome.call = text(await client.callTool({ name: "add", arguments: { a: 2, b: 3 } }));
    outcome.failure = error(await client.callTool({ name: "fail" }));
  });
  await using(runtime, era, user, async (client) => {
    outcome.runtime = text(await client.callTool({ name: "add", arguments: { a: 2, b: 3 } }));
  });
  await using(front, era, user, async (client) => {
    const called = { name: "add", arguments: { a: 2, b: 3 } };
    outcome.front = text(await client.callTool(called));
  });
  await using(service, era, user, (client) => useService(client, era, user, outcome));
  outcome.refusal = await isRefused(refused, era, user);
  return outcome;
}

async function useService(client, era, user, outcome) {
  outcome.error = error(await client.callTool({ name: "test_error_handling" }));
  const { content } = await client.callTool({ name: "test_multiple_content_types" });
  outcome.contents = content.map((content) => content.type);
  const onprogress = ({ progress }) => user.progress.push(progress);
  await client.callTool({ name: "test_tool_with_progress" }, { onprogress });
  outcome.progress = user.progress;
  if (era.mode === "legacy") await client.setLoggingLevel("info");
  const _meta = { "io.modelcontextprotocol/logLevel": "info" }; // what there is without sessions
  await client.callTool({ name: "test_tool_with_logging", _meta });
  outcome.logging = user.logged;
  outcome.elicitation = text(await client.callTool(era.elicitation));
  outcome.sampling = text(await client.callTool(era.sampling));
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
  if (era.mode === "legacy") await client.subscribeResource({ uri: WATCHED });
  else await client.listen({ resourceSubscriptions: [WATCHED] });
  while (user.changed.length === 0) await client.callTool({ name: "change_watched_resource" });
  outcome.subscription = user.changed[0];
}

async function using({ url, headers }, { mode }, user, talk) {
  const capabilities = { sampling: {}, elicitation: {} };
  const options = { capabilities, versionNegotiation: { mode } };
  const client = new Client({ name: "client", version: "1" }, options);
  client.setRequestHandler("elicitation/create", ({ params }) => {
    const fields = Object.keys(params.requestedSchema.properties);
    const content = Object.fromEntries(fields.map((field) => [field, "ann"]));
    return { action: "accept", content };
  });
  client.setRequestHandler("sampling/createMessage", () => {
    return { role: "assistant", content: { type: "text", text: "Paris" }, model: "a-model" };
  });
  client.setNotificationHandler("notifications/message", ({ params }) => {
    user.logged.push(params.data);
  });
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    user.changed.push(params.uri);
  });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  await talk(client);
  await client.close();
}

async function isRefused(server, era, user) {
  try {
    await using(server, era, user, (client) => client.listTools());
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
