// An A2A application: tasks with states, messages and artifacts, over JSON-RPC in version 1.0.

import { ApiError, ask, events, open } from "../../lib/api.js";
import { attempt } from "../../lib/bar.js";
import { h, list, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";
import { stamp } from "../../lib/words.js";
import { addressOf, entriesAt, requestOf } from "./agent_requests.js";
import { YOU, folded } from "./chat.js";

/** @typedef {import("./chat.js").Turn} Turn */

const VERSION = { "A2A-Version": "1.0" };
const WAITS = /INPUT_REQUIRED|AUTH_REQUIRED/; // a message continues such a task
const ENDED = /COMPLETED|FAILED|CANCELED|REJECTED/;

/** @param {import("./agent.js").Place} place @returns {import("./agent.js").Talk} */
export function a2aAgent({ name, session, note, moved }) {
  const path = () => addressOf(double.connection.a2a, name);
  const base = () => `/served${path().replace(/\/$/, "")}`;
  const tasks = taskList((id) => attempt(async () => {
    await call("CancelTask", { id });
    await readTasks();
  }), () => attempt(readTasks));
  const card = h("div");
  let number = 0;

  /** @param {string} method @param {any} params @param {AbortSignal} [signal] */
  function request(method, params, signal) {
    const body = { jsonrpc: "2.0", id: (number += 1), method, params };
    return open(`${base()}/`, { method: "POST", body, signal, headers: VERSION });
  }

  /** @param {string} method @param {any} params @param {AbortSignal} [signal] */
  const call = async (method, params, signal) => resultOf(await (await request(method, params, signal)).json());

  const ofContext = async () => (session
    ? (await call("ListTasks", { contextId: session, includeArtifacts: true, historyLength: 100 })).tasks.sort(byTime) : []);

  async function readTasks() {
    const latest = await ofContext();
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
      const read = await ask(`${base()}/.well-known/agent-card.json`, { headers: VERSION });
      card.replaceChildren(h("p", { class: "hint" }, read.description), folded("All that it declares", read));
      const ids = (await call("ListTasks", {})).tasks.map((/** @type {any} */ task) => task.contextId);
      return [...new Set(ids)].map((id) => ({ id: String(id) }));
    },
    async load(conversation) {
      const [tasks, entries] = await Promise.all([readTasks(), entriesAt([path(), `${path()}/`])]);
      for (const task of tasks) {
        const turn = conversation.turn();
        turn.request(entries.find((entry) => entry.response_body.includes(task.id) && /"(Send|message)/.test(entry.request_body))?.id);
        showTask(task, name, turn);
        note(`task ${wordOf(task.status)}`, task);
      }
      if (!tasks.length) conversation.none("This context has no task yet.");
    },
    async send(text, turn, signal, way) {
      const waits = tasks.last && WAITS.test(tasks.last.status?.state) ? { taskId: tasks.last.id } : {};
      const message = { messageId: crypto.randomUUID(), contextId: session, ...waits, role: "ROLE_USER", parts: [{ text }] };
      const answer = await request(way === "stream" ? "SendStreamingMessage" : "SendMessage", { message }, signal);
      turn.request(requestOf(answer));
      let context = session;
      const take = (/** @type {any} */ document) => {
        const result = resultOf(document);
        context = showResult(result, name, turn, note, way === "stream") ?? context;
        tasks.take(result);
      };
      try {
        if (/event-stream/.test(answer.headers.get("content-type") ?? "")) {
          for await (const { data } of events(answer)) take(data);
        } else take(await answer.json());
      } catch (error) {
        if (signal.aborted && tasks.last && !ENDED.test(tasks.last.status?.state)) turn.note("Its task continues; you can cancel it next to the chat.");
        throw error;
      }
      turn.whole();
      if (context !== session) moved(context);
      else await readTasks();
    },
  };
}

/** @param {any} document of JSON-RPC */
function resultOf(document) {
  if (document.error) throw new ApiError(200, `${document.error.message} (${document.error.code})`);
  return document.result;
}

/** @param {any} status */
const wordOf = (status) => (status?.state ?? "").replace("TASK_STATE_", "").toLowerCase().replaceAll("_", " ");

/** @param {any} a @param {any} b */
const byTime = (a, b) => (a.status?.timestamp ?? "").localeCompare(b.status?.timestamp ?? "");

/** @param {any} part @param {string} author @param {Turn} turn @param {boolean} [partial] */
function showPart(part, author, turn, partial = false) {
  if (typeof part.text === "string") turn.says(author, part.text, { partial });
  else if (part.raw) turn.data(author, part.mediaType ?? "", part.raw);
  else turn.folded(author, part.url ? `file ${part.url}` : "data", part.data ?? part);
}

/** The texts of an artifact are one text. @param {any} artifact @param {string} name @param {Turn} turn
 * @param {boolean} [more] of the artifact before */
function showArtifact(artifact, name, turn, more = false) {
  if (!more) turn.whole();
  for (const part of artifact.parts ?? []) showPart(part, name, turn, true);
}

/** @param {any} message @param {string} name @param {Turn} turn */
function showMessage(message, name, turn) {
  turn.whole();
  for (const part of message.parts ?? []) showPart(part, message.role === "ROLE_USER" ? YOU : name, turn);
}

/** @param {any} task @param {string} name @param {Turn} turn @param {boolean} [answered] without what was asked */
function showTask(task, name, turn, answered = false) {
  for (const message of task.history ?? []) if (!answered || message.role !== "ROLE_USER") showMessage(message, name, turn);
  for (const artifact of task.artifacts ?? []) showArtifact(artifact, name, turn);
  if (task.status?.message) showMessage(task.status.message, name, turn);
  turn.note(`The task is ${wordOf(task.status)}.`);
}

/** Show what an answer holds; return its context.
 * @param {any} result @param {string} name @param {Turn} turn @param {(title: string, value: any) => void} note
 * @param {boolean} streamed @returns {string | undefined} */
function showResult({ task, message, statusUpdate, artifactUpdate }, name, turn, note, streamed) {
  if (task) {
    note(`task ${wordOf(task.status)}`, task);
    if (!streamed) showTask(task, name, turn, true);
  } else if (message) {
    note("message", message);
    showMessage(message, name, turn);
  } else if (artifactUpdate) {
    note(`artifact ${artifactUpdate.artifact?.name ?? ""}`, artifactUpdate);
    showArtifact(artifactUpdate.artifact ?? {}, name, turn, Boolean(artifactUpdate.append));
  } else if (statusUpdate) {
    note(`status ${wordOf(statusUpdate.status)}`, statusUpdate);
    if (statusUpdate.status?.message) showMessage(statusUpdate.status.message, name, turn);
    if (ENDED.test(statusUpdate.status?.state) || WAITS.test(statusUpdate.status?.state)) turn.note(`The task is ${wordOf(statusUpdate.status)}.`);
  }
  return (task ?? message ?? statusUpdate ?? artifactUpdate)?.contextId;
}

/** @param {(id: string) => void} cancel @param {() => void} again */
function taskList(cancel, again) {
  const items = h("ul", { class: "choices tasks" });
  const none = h("p", { class: "none" }, "None yet.");
  const element = h("section", { class: "panel", "aria-label": "Tasks" },
    h("div", { class: "title" }, h("h2", null, "Tasks"), h("button", { onclick: again }, "Read again")), none, items);
  let tasks = /** @type {any[]} */ ([]);
  const panel = {
    element,
    get last() { return tasks.at(-1) ?? null; },
    /** Show the state that a stream says. @param {any} result */
    take({ task, statusUpdate }) {
      if (task) panel.show([...tasks.filter((other) => other.id !== task.id), task]);
      else if (statusUpdate) {
        panel.show(tasks.map((other) => (other.id === statusUpdate.taskId ? { ...other, status: statusUpdate.status } : other)));
      }
    },
    /** @param {any[]} next the oldest first */
    show(next) {
      tasks = next;
      none.hidden = next.length > 0;
      const key = (/** @type {any} */ task) => `${task.id} ${task.status?.state} ${task.artifacts?.length ?? 0}`;
      list(items, [...next].reverse(), key, (task) => {
        const state = h("span", { class: "tag" });
        setText(state, wordOf(task.status));
        state.dataset.state = /FAILED|REJECTED/.test(task.status?.state) ? "worse" : /COMPLETED/.test(task.status?.state) ? "ok" : "";
        const at = task.status?.timestamp;
        return h("li", null, h("div", { class: "title" }, state, h("code", null, task.id.slice(0, 8)),
          at && h("small", null, stamp(new Date(at))),
          !ENDED.test(task.status?.state) && h("button", { onclick: () => cancel(task.id) }, "Cancel the task")),
        (task.artifacts ?? []).map((/** @type {any} */ artifact) => folded(`artifact ${artifact.name || artifact.artifactId}`, artifact)),
        folded("The whole task", task));
      });
    },
  };
  return panel;
}
