// The cells of a session's kernel, run here or by an agent, and the kernel's variables.

import { ApiError, RUN_HEADER, act, ask, events, open, post } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { announce, h, list, setText } from "../../lib/dom.js";
import { timeOfDay } from "../../lib/format.js";
import { highlight } from "../../lib/highlight.js";
import { double } from "../../lib/live.js";
import { outputArea } from "../../lib/outputs.js";

const MOST_CELLS = 100;
const STATES = { busy: "The kernel is busy.", none: "No kernel has started yet.", silent: "The kernel does not answer." };

/** @param {import("./session.js").Session} session */
export function sessionCode({ path, active, latest, ids }) {
  const cells = h("div", { class: "cells", role: "log", "aria-label": "Executions" });
  const variables = variableTable(path);
  const code = h("textarea", { "aria-label": "Code", rows: 3, spellcheck: "false", autocapitalize: "off",
    "aria-keyshortcuts": "Shift+Enter", onkeydown: onKey,
    placeholder: "Python to run in this session; Shift+Enter runs it" });
  const run = h("button", { class: "primary", onclick: () => execute() }, "Run");
  const stop = h("button", { onclick: () => attempt(() => post(`${path}/interrupt`)), disabled: true }, "Interrupt");
  const composer = h("div", { class: "composer" }, code, h("div", { class: "buttons" }, run, stop));
  const element = h("div", { class: "beside" },
    h("section", { class: "panel", "aria-label": "Code" }, h("h2", null, "Code"), cells, composer),
    h("section", { class: "panel", "aria-label": "Variables" }, h("h2", null, "Variables"), variables.element));
  const closing = new AbortController();
  let isRunning = false;
  let isFollowing = false;
  /** @type {Promise<void>} */
  let earlier = Promise.resolve();

  /** @type {Map<string, ReturnType<typeof cell>>} */
  const running = new Map(); // by the ids of their executions
  /** @type {ReturnType<typeof cell> | undefined} */
  let late;
  /** @type {() => void} */
  let startListening;
  const listening = new Promise((resolve) => { startListening = () => resolve(undefined); });
  const key = () => ({ tool_id: latest().ToolId, user_session_id: latest().UserSessionId });

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    execute();
  }

  /** @param {string} author @param {string} [source] @param {string} [language] */
  function cell(author, source, language = "python") {
    const area = outputArea();
    const count = h("span", { class: "count" }, "…");
    const rerun = source !== undefined && h("button", { class: "quiet", onclick: () => execute(source, language) }, "Run again");
    const element = h("article", { class: "cell" }, h("header", null, count, h("span", null, author), rerun),
      source !== undefined && h("pre", { class: "code" }, highlight(source, language)), area.element);
    cells.append(element);
    if (cells.childElementCount > MOST_CELLS) cells.firstChild.remove();
    element.scrollIntoView({ block: "nearest" });
    /** @param {string} kind @param {any} event */
    return (kind, event) => {
      if (kind === "started") setText(count, `[${event.execution_count ?? " "}]`);
      else if (kind === "output") area.add(event.msg_type, event.content);
      else if (kind === "dropped") area.note(`${event.messages} outputs were dropped because there were too many.`);
      else if (kind === "failed") area.note(event.error.message, "bad");
      else if (kind === "finished" && /^(timeout|interrupted)$/.test(event.status)) area.note(`Ended: ${event.status}.`, "bad");
      if (event.context_lost) area.note("The session's variables are lost.", "bad");
      if (element.getBoundingClientRect().bottom > innerHeight) composer.scrollIntoView({ block: "nearest" });
    };
  }

  /** Show the earlier executions, from the journal. */
  async function showEarlier() {
    const { entries } = await ask(`/journal?${new URLSearchParams({ session: latest().SessionId, action: "InvokeTool", bodies: "true" })}`);
    for (const entry of entries.slice(-MOST_CELLS)) {
      try {
        const { code: source, kernel_name: language } = JSON.parse(JSON.parse(entry.request_body).OperationPayload);
        const { data } = JSON.parse(JSON.parse(entry.response_body).Result.Result);
        if (source === undefined) continue;
        const show = cell(timeOfDay(entry.at), source, language);
        show("started", { execution_count: data.execution_count });
        for (const { output_type: kind, ...content } of data.outputs) show("output", { msg_type: kind, content });
      } catch { /* a command, an error, or a body that the journal has truncated */ }
    }
  }

  /** @param {string} [rerun] the code of an earlier cell @param {string} [language] */
  async function execute(rerun, language = "python") {
    const source = rerun ?? code.value;
    if (!source.trim() || isRunning) return;
    if (rerun === undefined) code.value = "";
    isRunning = true;
    update();
    await earlier; // or the journal would have this code, too
    const name = crypto.randomUUID();
    const show = cell("you", source, language);
    running.set(name, show);
    try {
      await listening;
      const body = { ...ids(), OperationType: "RunCode", OperationPayload: JSON.stringify({ code: source, ...(rerun && { kernel_name: language }) }) };
      const { Result } = await act("InvokeTool", body, { [RUN_HEADER]: name });
      announce(`The code ended: ${JSON.parse(Result).data?.status ?? "error"}.`);
    } catch (error) {
      running.delete(name);
      show("failed", { error });
    }
    isRunning = false;
    update();
    code.focus();
    await variables.read();
  }

  /** Show executions as they happen, of this page and of other clients. */
  async function follow() {
    try {
      const stream = await open(`/outputs?${new URLSearchParams(key())}`, { signal: closing.signal });
      await earlier;
      for await (const { kind, data } of events(stream)) {
        if (kind === "listening") {
          startListening();
          continue;
        }
        if (kind === "late") { // a thread or a timer of code that has ended
          late ??= cell("code that had ended", undefined);
          late("output", data);
          continue;
        }
        if (kind === "started") late = undefined;
        if (!running.has(data.run)) running.set(data.run, cell("a client", undefined));
        running.get(data.run)?.(kind, data);
        if (kind !== "finished") continue;
        running.delete(data.run);
        await variables.read();
      }
    } catch { /* the page is closed, or the double has gone; update() starts again when it is back */ }
    isFollowing = false;
  }

  function update() {
    const session = active();
    run.disabled = isRunning || !session;
    stop.disabled = !isRunning && !session?.busy;
    if (double.status !== "live" || !session || isFollowing) return;
    isFollowing = true;
    if (!cells.firstChild) earlier = showEarlier().catch(() => undefined); // later executions are shown even so
    follow();
    variables.read();
  }

  return { element, update, close: () => closing.abort() };
}

/** The variables of a session's Python kernel. Reading them does not extend the session's lifetime.
 * @param {string} path of the session */
function variableTable(path) {
  const rows = h("dl", { class: "variables" });
  const note = h("p", { class: "none" });

  async function read() {
    try {
      const { variables, state, left_out } = await ask(`${path}/variables`);
      if (state === "busy") return;
      list(rows, variables, (variable) => `${variable.name} ${variable.type} ${variable.repr}`, (variable) => h("div", null,
        h("dt", null, variable.name, " ", h("small", null, variable.type)), h("dd", null, h("code", null, variable.repr))));
      setText(note, variables.length ? (left_out ? `and ${left_out} more` : "")
        : /** @type {Record<string, string>} */ (STATES)[state] ?? "No variables yet.");
    } catch (error) {
      if (error instanceof ApiError) setText(note, error.message);
    }
  }

  return { element: h("div", null, rows, note), read };
}
