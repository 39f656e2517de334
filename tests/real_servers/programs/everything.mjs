// A server on the SDK of TypeScript that does what the scenarios of the official suite ask for:
// `everything.mjs stdio`, or over HTTP at $PORT. It runs in the folder of its packages.

import { randomUUID } from "node:crypto";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

const text = (said) => ({ type: "text", text: said });
const picture = { type: "image", data: PNG, mimeType: "image/png" };
const said = (...content) => ({ content });
const resource = (uri, mimeType, content) => ({ type: "resource", resource: { uri, mimeType, text: content } });
const form = (properties) => ({ type: "object", properties });
const titled = (...values) => values.map((one) => ({ const: one, title: one.toUpperCase() }));
const options = ["option1", "option2", "option3"];

const CHOICES = form({
  untitledSingle: { type: "string", enum: options },
  titledSingle: { type: "string", oneOf: titled("value1", "value2") },
  legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["One", "Two"] },
  untitledMulti: { type: "array", items: { type: "string", enum: options } },
  titledMulti: { type: "array", items: { anyOf: titled("value1", "value2") } },
});
const DEFAULTS = form({
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
});

async function log(extra, line) {
  await extra.sendNotification({ method: "notifications/message", params: { level: "info", data: line } });
}

async function progress(extra, now) {
  const progressToken = extra._meta?.progressToken;
  if (progressToken === undefined) return;
  await extra.sendNotification({
    method: "notifications/progress",
    params: { progressToken, progress: now, total: 100 },
  });
}

async function ask(extra, message, requestedSchema) {
  const asked = { method: "elicitation/create", params: { message, requestedSchema } };
  const answer = await extra.sendRequest(asked, types.ElicitResultSchema);
  return said(text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`));
}

const TOOLS = {
  test_simple_text: () => said(text("This is a simple text response for testing.")),
  test_image_content: () => said(picture),
  test_audio_content: () => said({ type: "audio", data: WAV, mimeType: "audio/wav" }),
  test_embedded_resource: () =>
    said(resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
  test_multiple_content_types: () =>
    said(
      text("Multiple content types test:"),
      picture,
      resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
  test_error_handling: () => ({
    ...said(text("This tool intentionally returns an error for testing")),
    isError: true,
  }),
  test_tool_with_logging: async (_given, extra) => {
    for (const line of ["execution started", "processing data", "execution completed"]) {
      await log(extra, `Tool ${line}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return said(text("Tool with logging executed."));
  },
  test_tool_with_progress: async (_given, extra) => {
    for (const now of [0, 50, 100]) await progress(extra, now);
    return said(text("Tool with progress executed."));
  },
  test_sampling: async ({ prompt }, extra) => {
    const messages = [{ role: "user", content: text(prompt) }];
    const asked = { method: "sampling/createMessage", params: { messages, maxTokens: 100 } };
    const answer = await extra.sendRequest(asked, types.CreateMessageResultSchema);
    return said(text(`LLM response: ${answer.content.text}`));
  },
  test_elicitation: ({ message }, extra) => ask(extra, message, form({ username: { type: "string" } })),
  test_elicitation_sep1034_defaults: (_given, extra) => ask(extra, "Review the values", DEFAULTS),
  test_elicitation_sep1330_enums: (_given, extra) => ask(extra, "Choose", CHOICES),
};

const TEXTS = {
  "test://static-text": "This is the content of the static text resource.",
  "test://watched-resource": "This is the content of the watched resource.",
};

const PROMPTS = {
  test_simple_prompt: [[], () => [text("This is a simple prompt for testing.")]],
  test_prompt_with_arguments: [
    ["arg1", "arg2"],
    ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  ],
  test_prompt_with_embedded_resource: [
    ["resourceUri"],
    ({ resourceUri }) => [
      resource(resourceUri, "text/plain", "Embedded resource content for testing."),
      text("Please process the embedded resource above."),
    ],
  ],
  test_prompt_with_image: [[], () => [picture, text("Please analyze the image above.")]],
};

function read(uri) {
  if (uri in TEXTS) return { uri, mimeType: "text/plain", text: TEXTS[uri] };
  if (uri === "test://static-binary") return { uri, mimeType: "image/png", blob: PNG };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) throw new types.McpError(-32002, "Resource not found", { uri });
  const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  return { uri, mimeType: "application/json", text: data };
}

function made() {
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
  const server = new Server({ name: "everything", version: "1.0.0" }, { capabilities });
  const on = (schema, handle) => server.setRequestHandler(schema, handle);
  on(types.ListToolsRequestSchema, () => ({
    tools: Object.keys(TOOLS).map((name) => ({ name, description: name, inputSchema: form({}) })),
  }));
  on(types.CallToolRequestSchema, ({ params }, extra) => {
    if (!(params.name in TOOLS)) throw new types.McpError(-32602, `Unknown tool: ${params.name}`);
    return TOOLS[params.name](params.arguments ?? {}, extra);
  });
  on(types.ListResourcesRequestSchema, () => ({
    resources: [...Object.keys(TEXTS), "test://static-binary"].map((uri) => ({ uri, name: uri })),
  }));
  on(types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template" }],
  }));
  on(types.ReadResourceRequestSchema, ({ params }) => ({ contents: [read(params.uri)] }));
  for (const schema of [types.SubscribeRequestSchema, types.UnsubscribeRequestSchema]) on(schema, () => ({}));
  on(types.ListPromptsRequestSchema, () => ({
    prompts: Object.entries(PROMPTS).map(([name, [names]]) => ({
      name,
      description: name,
      arguments: names.map((one) => ({ name: one, required: true })),
    })),
  }));
  on(types.GetPromptRequestSchema, ({ params }) => ({
    messages: PROMPTS[params.name][1](params.arguments ?? {}).map((content) => ({ role: "user", content })),
  }));
  on(types.CompleteRequestSchema, () => ({ completion: { values: ["paris", "park"], total: 2, hasMore: false } }));
  on(types.SetLevelRequestSchema, () => ({}));
  return server;
}

async function overHttp(port) {
  const sessions = new Map();
  const app = createMcpExpressApp();
  app.all("/mcp", async (request, response) => {
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (transport === undefined && request.headers["mcp-session-id"] !== undefined) {
      response.status(404).json({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } });
      return;
    }
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await made().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
  });
  app.listen(port, "127.0.0.1");
}

if (process.argv[2] === "stdio") await made().connect(new StdioServerTransport());
else await overHttp(Number(process.env.PORT));
