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
  const found = {};
  for (const binding of Object.keys(TRANSPORTS)) {
    found[`1.0 ${binding}`] = await converseOver(binding, application.url, facts.hook);
  }
  found.keys = { runtime: await echo(runtime) };
  return found;
}

async function clientOf(url, binding, clientConfig = {}) {
  const transports = [new TRANSPORTS[binding]()];
  const options = { transports, preferredTransports: [binding], clientConfig };
  return await new ClientFactory(options).createFromUrl(url);
}

async function converseOver(binding, url, hook) {
  const client = await clientOf(url, binding);
  const found = { message: said(await send(client, "hello")) };
  const asked = await send(client, "ask");
  found.asked = [state(asked.status), said(asked)];
  const done = await send(client, "this", asked);
  found.continued = [done.id === asked.id, state(done.status), said(done)];
  const failed = await send(client, "fail");
  found.failed = [state(failed.status), said(failed)];
  const waiting = await send(client, "ask");
  found.canceled = state((await client.cancelTask({ tenant: "", id: waiting.id })).status);
  found.errors = [
    await error(client.cancelTask({ tenant: "", id: waiting.id })),
    await error(client.getTask({ tenant: "", id: "nobody's" })),
  ];
  const wanted = ListTasksRequest.fromJSON({ contextId: asked.contextId });
  const listed = await client.listTasks(wanted);
  found.listed = listed.tasks.map((task) => task.id).join() === asked.id;
  Object.assign(found, await configure(client, (await send(client, "ask")).id, hook));
  const config = { tenant: "", id: "", taskId: "", url: hook, token: "" };
  const told = await clientOf(url, binding, { pushNotificationConfig: config });
  const events = await all(told.sendMessageStream(message("work")));
  found.streamed = events.map(kind);
  const kept = await client.getTask({ tenant: "", id: events[0].task.id });
  found.artifact = Task.toJSON(kept).artifacts[0].parts.map((part) => part.text).join("");
  found.resumed = await resume(client);
  return found;
}

async function configure(client, taskId, hook) {
  const one = { tenant: "", taskId, id: "mine" };
  const made = await client.createTaskPushNotificationConfig({ ...one, url: hook, token: "" });
  const read = await client.getTaskPushNotificationConfig(one);
  const every = { tenant: "", taskId, pageSize: 10, pageToken: "" };
  const before = await client.listTaskPushNotificationConfig(every);
  await client.deleteTaskPushNotificationConfig(one);
  const after = await client.listTaskPushNotificationConfig(every);
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
  const fetchImpl = (asked, options = {}) =>
    fetch(asked, { ...options, headers: { ...options.headers, ...headers } });
  const transports = [new JsonRpcTransportFactory({ fetchImpl })];
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl });
  const factory = new ClientFactory({ transports, cardResolver });
  const client = await factory.createFromUrl(`${url}/`); // without the slash it would look above
  const task = await send(client, "hello");
  return said(task) || task.artifacts.flatMap((one) => one.parts.map((p) => p.text)).join("");
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
  const found = [];
  for await (const event of events) found.push(StreamResponse.toJSON(event));
  return found;
}

async function error(call) {
  try {
    await call;
  } catch (problem) {
    return problem.constructor.name.replace(/^(JsonRpc|Rest|Grpc)/, "");
  }
  return "none";
}

function said(task) {
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
