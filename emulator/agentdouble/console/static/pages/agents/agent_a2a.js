// An A2A application: contexts with tasks, messages and artifacts, over JSON-RPC of version 1.0.

import { ApiError, ask, events, open } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { h, list, setText } from "../../lib/dom.js";
import { timestamp } from "../../lib/format.js";
import { double } from "../../lib/live.js";
import { applicationPath, latestEntries, requestIdOf } from "./agent_journal.js";
import { collapsedJson } from "./content.js";
import { YOU } from "./turn.js";

/** @typedef {import("./turn.js").Turn} Turn */

const VERSION = { "A2A-Version": "1.0" };
const WAITS = /INPUT_REQUIRED|AUTH_REQUIRED/; // states in which the next message continues the task
const ENDED = /COMPLETED|FAILED|CANCELED|REJECTED/;

/** @param {import("./agent.js").AgentContext} place @returns {import("./agent.js").Protocol} */
export function a2aAgent({ name, session, note, openSession }) {
  const path = () => applicationPath(double.connection.a2a, name);
  const base = () => `/served${path().replace(/\/$/, "")}`;
  const tasks = taskList((id) => attempt(async () => {
    await call("CancelTask", { id });
    await readTasks();
  }), () => attempt(readTasks));
  const card = h("div");
  let lastId = 0;

  /** @param {string} method @param {any} params @param {AbortSignal} [signal] */
  function request(method, params, signal) {
    const body = { jsonrpc: "2.0", id: (lastId += 1), method, params };
    return open(`${base()}/`, { method: "POST", body, signal, headers: VERSION });
  }

  /** @param {string} method @param {any} params @param {AbortSignal} [signal] */
  const call = async (method, params, signal) => resultOf(await (await request(method, params, signal)).json());

  const listTasks = async () => (session
    ? (await call("ListTasks", { contextId: session, includeArtifacts: true, historyLength: 100 })).tasks.sort(byTime) : []);

  async function readTasks() {
    const latest = await listTasks();
    tasks.show(latest);
    return latest;
  }

  return {
    about: "A2A",
    noun: "Context",
    ways: [["stream", "streamed (message/stream)"], ["send", "as a whole (message/send)"]],
    panels: [tasks.element, h("section", { class: "panel", "aria-label": "Card" }, h("h2", null, "Card"), card)],
    begin: async () => crypto.randomUUID(),
    async sessions() {
      const declared = await ask(`${base()}/.well-known/agent-card.json`, { headers: VERSION });
      card.replaceChildren(h("p", { class: "hint" }, declared.description), collapsedJson("The whole card", declared));
      const ids = (await call("ListTasks", {})).tasks.map((/** @type {any} */ task) => task.contextId);
      return [...new Set(ids)].map((id) => ({ id: String(id) }));
    },
    async load(conversation) {
      const [all, entries] = await Promise.all([readTasks(), latestEntries([path(), `${path()}/`])]);
      for (const task of all) {
        const turn = conversation.turn();
        turn.request(entries.find((entry) => entry.response_body.includes(task.id) && /"(Send|message)/.test(entry.request_body))?.id);
        showTask(task, name, turn);
        note(`task ${stateOf(task.status)}`, task);
      }
      if (!all.length) conversation.none("This context has no tasks yet.");
    },
    async send(text, turn, signal, way) {
      const waits = tasks.last && WAITS.test(tasks.last.status?.state) ? { taskId: tasks.last.id } : {};
      const message = { messageId: crypto.randomUUID(), contextId: session, ...waits, role: "ROLE_USER", parts: [{ text }] };
      const response = await request(way === "stream" ? "SendStreamingMessage" : "SendMessage", { message }, signal);
      turn.request(requestIdOf(response));
      let context = session;
      const show = (/** @type {any} */ document) => {
        const result = resultOf(document);
        context = showResult(result, name, turn, note, way === "stream") ?? context;
        tasks.apply(result);
      };
      try {
        if (/event-stream/.test(response.headers.get("content-type") ?? "")) {
          for await (const { data } of events(response)) show(data);
        } else show(await response.json());
      } catch (error) {
        if (signal.aborted && tasks.last && !ENDED.test(tasks.last.status?.state)) turn.note("The task continues; you can cancel it in the list of tasks.");
        throw error;
      }
      turn.complete();
      if (context !== session) openSession(context);
      else await readTasks();
    },
  };
}

/** @param {any} document a JSON-RPC response */
function resultOf(document) {
  if (document.error) throw new ApiError(200, `${document.error.message} (${document.error.code})`);
  return document.result;
}

/** @param {any} status */
const stateOf = (status) => (status?.state ?? "").replace("TASK_STATE_", "").toLowerCase().replaceAll("_", " ");

/** @param {any} a @param {any} b */
const byTime = (a, b) => (a.status?.timestamp ?? "").localeCompare(b.status?.timestamp ?? "");

/** @param {any} part @param {string} author @param {Turn} turn @param {boolean} [partial] */
function showPart(part, author, turn, partial = false) {
  if (typeof part.text === "string") turn.text(author, part.text, { partial });
  else if (part.raw) turn.data(author, part.mediaType ?? "", part.raw);
  else turn.json(author, part.url ? `file ${part.url}` : "data", part.data ?? part);
}

/** Show an artifact; its texts are joined. @param {any} artifact @param {string} name @param {Turn} turn
 * @param {boolean} [append] to the previous artifact */
function showArtifact(artifact, name, turn, append = false) {
  if (!append) turn.complete();
  for (const part of artifact.parts ?? []) showPart(part, name, turn, true);
}

/** @param {any} message @param {string} name @param {Turn} turn */
function showMessage(message, name, turn) {
  turn.complete();
  for (const part of message.parts ?? []) showPart(part, message.role === "ROLE_USER" ? YOU : name, turn);
}

/** @param {any} task @param {string} name @param {Turn} turn @param {boolean} [isReply] leave out the user's messages */
function showTask(task, name, turn, isReply = false) {
  for (const message of task.history ?? []) if (!isReply || message.role !== "ROLE_USER") showMessage(message, name, turn);
  for (const artifact of task.artifacts ?? []) showArtifact(artifact, name, turn);
  if (task.status?.message) showMessage(task.status.message, name, turn);
  turn.note(`The task is ${stateOf(task.status)}.`);
}

/** Show the content of a response; return its context.
 * @param {any} result @param {string} name @param {Turn} turn @param {(title: string, value: any) => void} note
 * @param {boolean} streamed @returns {string | undefined} */
function showResult({ task, message, statusUpdate, artifactUpdate }, name, turn, note, streamed) {
  if (task) {
    note(`task ${stateOf(task.status)}`, task);
    if (!streamed) showTask(task, name, turn, true);
  } else if (message) {
    note("message", message);
    showMessage(message, name, turn);
  } else if (artifactUpdate) {
    note(`artifact ${artifactUpdate.artifact?.name ?? ""}`, artifactUpdate);
    showArtifact(artifactUpdate.artifact ?? {}, name, turn, Boolean(artifactUpdate.append));
  } else if (statusUpdate) {
    note(`status ${stateOf(statusUpdate.status)}`, statusUpdate);
    if (statusUpdate.status?.message) showMessage(statusUpdate.status.message, name, turn);
    if (ENDED.test(statusUpdate.status?.state) || WAITS.test(statusUpdate.status?.state)) turn.note(`The task is ${stateOf(statusUpdate.status)}.`);
  }
  return (task ?? message ?? statusUpdate ?? artifactUpdate)?.contextId;
}

/** @param {(id: string) => void} cancel @param {() => void} reload */
function taskList(cancel, reload) {
  const items = h("ul", { class: "choices tasks" });
  const none = h("p", { class: "none" }, "None yet.");
  const element = h("section", { class: "panel", "aria-label": "Tasks" },
    h("div", { class: "title" }, h("h2", null, "Tasks"), h("button", { onclick: reload }, "Reload")), none, items);
  let tasks = /** @type {any[]} */ ([]);
  const panel = {
    element,
    get last() { return tasks.at(-1) ?? null; },
    /** Apply an event of a stream. @param {any} result */
    apply({ task, statusUpdate }) {
      if (task) panel.show([...tasks.filter((other) => other.id !== task.id), task]);
      else if (statusUpdate) {
        panel.show(tasks.map((other) => (other.id === statusUpdate.taskId ? { ...other, status: statusUpdate.status } : other)));
      }
    },
    /** @param {any[]} next oldest first */
    show(next) {
      tasks = next;
      none.hidden = next.length > 0;
      const key = (/** @type {any} */ task) => `${task.id} ${task.status?.state} ${task.artifacts?.length ?? 0}`;
      list(items, [...next].reverse(), key, (task) => {
        const state = h("span", { class: "tag" });
        setText(state, stateOf(task.status));
        state.dataset.state = /FAILED|REJECTED/.test(task.status?.state) ? "worse" : /COMPLETED/.test(task.status?.state) ? "ok" : "";
        const at = task.status?.timestamp;
        return h("li", null, h("div", { class: "title" }, state, h("code", null, task.id.slice(0, 8)),
          at && h("small", null, timestamp(new Date(at))),
          !ENDED.test(task.status?.state) && h("button", { onclick: () => cancel(task.id) }, "Cancel the task")),
        (task.artifacts ?? []).map((/** @type {any} */ artifact) => collapsedJson(`artifact ${artifact.name || artifact.artifactId}`, artifact)),
        collapsedJson("The whole task", task));
      });
    },
  };
  return panel;
}
