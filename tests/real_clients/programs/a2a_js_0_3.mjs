// A conversation of the JavaScript SDK of the 0.3 era, over JSON-RPC.

import { randomUUID } from "node:crypto";

import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from "a2a-js-0.3/client";

const TRANSPORTS = { JSONRPC: JsonRpcTransportFactory };

export async function converse(facts) {
  const { application, runtime } = facts.a2a;
  const outcome = {};
  for (const transport of Object.keys(TRANSPORTS)) {
    outcome[`0.3 ${transport}`] = await converseOver(transport, application.url, facts.hook);
  }
  outcome.keys = { runtime: await echo(runtime) };
  return outcome;
}

async function clientOf(url, transport, clientConfig = {}) {
  const transports = [new TRANSPORTS[transport]()];
  const options = { transports, preferredTransports: [transport], clientConfig };
  return await new ClientFactory(options).createFromUrl(url);
}

async function converseOver(transport, url, hook) {
  const client = await clientOf(url, transport);
  const outcome = { message: textOf(await send(client, "hello")) };
  const paused = await send(client, "ask");
  outcome.asked = [state(paused.status), textOf(paused)];
  const done = await send(client, "this", paused);
  outcome.continued = [done.id === paused.id, state(done.status), textOf(done)];
  const failed = await send(client, "fail");
  outcome.failed = [state(failed.status), textOf(failed)];
  const waiting = await send(client, "ask");
  outcome.canceled = state((await client.cancelTask({ id: waiting.id })).status);
  outcome.errors = [
    await error(client.cancelTask({ id: waiting.id })),
    await error(client.getTask({ id: "nobody's" })),
  ];
  Object.assign(outcome, await configure(client, (await send(client, "ask")).id, hook));
  const notified = await clientOf(url, transport, { pushNotificationConfig: { url: hook } });
  const events = await all(notified.sendMessageStream(message("work")));
  outcome.streamed = events.map(kind);
  const stored = await client.getTask({ id: events[0].id });
  outcome.artifact = stored.artifacts[0].parts.map((part) => part.text).join("");
  outcome.resumed = await resume(client);
  return outcome;
}

async function configure(client, taskId, hook) {
  const config = { taskId, pushNotificationConfig: { id: "mine", url: hook } };
  const made = await client.setTaskPushNotificationConfig(config);
  const names = { id: taskId, pushNotificationConfigId: "mine" };
  const read = await client.getTaskPushNotificationConfig(names);
  const before = await client.listTaskPushNotificationConfig({ id: taskId });
  await client.deleteTaskPushNotificationConfig(names);
  const after = await client.listTaskPushNotificationConfig({ id: taskId });
  const same = read.pushNotificationConfig.url === hook;
  return {
    config: [made.pushNotificationConfig.id, same],
    configs: [before.length, after.length],
  };
}

async function resume(client) {
  const stream = client.sendMessageStream(message("hold"));
  const first = (await stream.next()).value;
  await stream.return();
  const kinds = [];
  for await (const event of client.resubscribeTask({ id: first.id })) {
    if (kinds.length === 0) await send(client, "go");
    kinds.push(kind(event));
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
  const ids = { messageId: randomUUID(), taskId: task.id, contextId: task.contextId };
  return { message: { kind: "message", role: "user", parts: [{ kind: "text", text }], ...ids } };
}

async function send(client, text, task) {
  return await client.sendMessage(message(text, task));
}

async function all(events) {
  const received = [];
  for await (const event of events) received.push(event);
  return received;
}

async function error(call) {
  try {
    await call;
  } catch (problem) {
    return problem.constructor.name.replace("JSONRPC", "");
  }
  return "none";
}

function textOf(task) {
  return (task.status.message?.parts ?? []).map((part) => part.text).join("");
}

function state(status) {
  return status.state.replace("-", "_");
}

function kind(event) {
  return event.kind === "artifact-update" ? "artifact" : state(event.status);
}
