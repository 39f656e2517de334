// A conversation of the JavaScript SDK, @a2a-js/sdk 1.x, over each binding.

import { randomUUID } from "node:crypto";

import { ListTasksRequest, SendMessageRequest, StreamResponse, Task, TaskState } from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";

const TRANSPORTS = {
  JSONRPC: JsonRpcTransportFactory,
  "HTTP+JSON": RestTransportFactory,
};

export async function converse(facts) {
  const { application, runtime } = facts.a2a;
  const outcome = {};
  for (const binding of Object.keys(TRANSPORTS)) {
    outcome[`1.0 ${binding}`] = await converseOver(binding, application.url, facts.hook);
  }
  outcome.keys = { runtime: await echo(runtime) };
  return outcome;
}

async function clientOf(url, binding, clientConfig = {}) {
  const transports = [new TRANSPORTS[binding]()];
  const options = { transports, preferredTransports: [binding], clientConfig };
  return await new ClientFactory(options).createFromUrl(url);
}

async function converseOver(binding, url, hook) {
  const client = await clientOf(url, binding);
  const outcome = { message: textOf(await send(client, "hello")) };
  const paused = await send(client, "ask");
  outcome.asked = [state(paused.status), textOf(paused)];
  const done = await send(client, "this", paused);
  outcome.continued = [done.id === paused.id, state(done.status), textOf(done)];
  const failed = await send(client, "fail");
  outcome.failed = [state(failed.status), textOf(failed)];
  const waiting = await send(client, "ask");
  outcome.canceled = state((await client.cancelTask({ tenant: "", id: waiting.id })).status);
  outcome.errors = [
    await error(client.cancelTask({ tenant: "", id: waiting.id })),
    await error(client.getTask({ tenant: "", id: "nobody's" })),
  ];
  const request = ListTasksRequest.fromJSON({ contextId: paused.contextId });
  const listed = await client.listTasks(request);
  outcome.listed = listed.tasks.map((task) => task.id).join() === paused.id;
  Object.assign(outcome, await configure(client, (await send(client, "ask")).id, hook));
  const config = { tenant: "", id: "", taskId: "", url: hook, token: "" };
  const notified = await clientOf(url, binding, { pushNotificationConfig: config });
  const events = await all(notified.sendMessageStream(message("work")));
  outcome.streamed = events.map(kind);
  const stored = await client.getTask({ tenant: "", id: events[0].task.id });
  outcome.artifact = Task.toJSON(stored).artifacts[0].parts.map((part) => part.text).join("");
  outcome.resumed = await resume(client);
  return outcome;
}

async function configure(client, taskId, hook) {
  const names = { tenant: "", taskId, id: "mine" };
  const made = await client.createTaskPushNotificationConfig({ ...names, url: hook, token: "" });
  const read = await client.getTaskPushNotificationConfig(names);
  const query = { tenant: "", taskId, pageSize: 10, pageToken: "" };
  const before = await client.listTaskPushNotificationConfig(query);
  await client.deleteTaskPushNotificationConfig(names);
  const after = await client.listTaskPushNotificationConfig(query);
  const counted = [before.configs.length, after.configs.length];
  return { config: [made.id, read.url === hook], configs: counted };
}

async function resume(client) {
  const stream = client.sendMessageStream(message("hold"));
  const first = StreamResponse.toJSON((await stream.next()).value);
  await stream.return();
  const kinds = [];
  for await (const event of client.resubscribeTask({ tenant: "", id: first.task.id })) {
    if (kinds.length === 0) await send(client, "go");
    kinds.push(kind(StreamResponse.toJSON(event)));
  }
  return kinds.slice(-2);
}

async function echo({ url, headers }) {
  const fetchImpl = (resource, options = {}) =>
    fetch(resource, { ...options, headers: { ...options.headers, ...headers } });
  const transports = [new JsonRpcTransportFactory({ fetchImpl })];
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl });
  const factory = new ClientFactory({ transports, cardResolver });
  const client = await factory.createFromUrl(`${url}/`); // without the slash it would look above
  const task = await send(client, "hello");
  return textOf(task) || task.artifacts.flatMap((artifact) => artifact.parts.map((p) => p.text)).join("");
}

function message(text, task = {}) {
  const parts = [{ text }];
  const ids = { messageId: randomUUID(), taskId: task.id, contextId: task.contextId };
  return SendMessageRequest.fromJSON({ message: { role: "ROLE_USER", parts, ...ids } });
}

async function send(client, text, task) {
  return Task.toJSON(await client.sendMessage(message(text, task)));
}

async function all(events) {
  const received = [];
  for await (const event of events) received.push(StreamResponse.toJSON(event));
  return received;
}

async function error(call) {
  try {
    await call;
  } catch (problem) {
    return problem.constructor.name.replace(/^(JsonRpc|Rest|Grpc)/, "");
  }
  return "none";
}

function textOf(task) {
  return (task.status.message?.parts ?? []).map((part) => part.text).join("");
}

function state({ state }) {
  const name = typeof state === "number" ? TaskState[state] : state;
  return name.replace("TASK_STATE_", "").toLowerCase();
}

function kind(event) {
  if (event.artifactUpdate) return "artifact";
  return state((event.task ?? event.statusUpdate).status);
}
