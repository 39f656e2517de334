// Cells in a session's own kernel: those that one runs here, and those that its agent runs.

import { ApiError, RUN_HEADER, act, ask, events, open, post } from "../../lib/api.js";
import { attempt } from "../../lib/bar.js";
import { coloured } from "../../lib/colours.js";
import { h, list, say, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";
import { outputArea } from "../../lib/outputs.js";
import { timeOfDay } from "../../lib/words.js";

const MOST_CELLS = 100;
const WHY = { busy: "The kernel is busy.", none: "No kernel has started yet.", silent: "The kernel does not answer." };

/** @param {import("./session.js").Session} session */
export function sessionCode({ path, living, latest, ids }) {
  const cells = h("div", { class: "cells", role: "log", "aria-label": "Executions" });
  const variables = variableTable(path);
  const code = h("textarea", { "aria-label": "Code", rows: 3, spellcheck: "false", autocapitalize: "off",
    "aria-keyshortcuts": "Shift+Enter", onkeydown: typed,
    placeholder: "Python to run in this session; Shift+Enter runs it" });
  const run = h("button", { class: "primary", onclick: () => execute() }, "Run");
  const stop = h("button", { onclick: () => attempt(() => post(`${path}/interrupt`)), disabled: true }, "Interrupt");
  const composer = h("div", { class: "composer" }, code, h("div", { class: "buttons" }, run, stop));
  const element = h("div", { class: "beside" },
    h("section", { class: "panel", "aria-label": "Code" }, h("h2", null, "Code"), cells, composer),
    h("section", { class: "panel", "aria-label": "Variables" }, h("h2", null, "Variables"), variables.element));
  const closing = new AbortController();
  let runs = false;
  let followed = false;

  /** @type {Map<string, ReturnType<typeof cell>>} */
  const running = new Map(); // cells by the names of their runs
  /** @type {() => void} */
  let hear;
  const listening = new Promise((resolve) => { hear = () => resolve(undefined); });
  const key = () => ({ tool_id: latest().ToolId, user_session_id: latest().UserSessionId });

  /** @param {KeyboardEvent} event */
  function typed(event) {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    execute();
  }

  /** @param {string} by @param {string} [source] @param {string} [language] */
  function cell(by, source, language = "python") {
    const area = outputArea();
    const count = h("span", { class: "count" }, "…");
    const again = source !== undefined && h("button", { class: "quiet", onclick: () => execute(source, language) }, "Run again");
    const element = h("article", { class: "cell" }, h("header", null, count, h("span", null, by), again),
      source !== undefined && h("pre", { class: "code" }, coloured(source, language)), area.element);
    cells.append(element);
    if (cells.childElementCount > MOST_CELLS) cells.firstChild.remove();
    element.scrollIntoView({ block: "nearest" });
    /** @param {string} kind @param {any} event */
    return (kind, event) => {
      if (kind === "started") setText(count, `[${event.execution_count ?? " "}]`);
      else if (kind === "output") area.add(event.msg_type, event.content);
      else if (kind === "dropped") area.note(`${event.messages} outputs were too many to show.`);
      else if (kind === "failed") area.note(event.error.message, "bad");
      else if (kind === "finished" && /^(timeout|interrupted)$/.test(event.status)) area.note(`Ended: ${event.status}.`, "bad");
      if (event.context_lost) area.note("The session's variables are lost.", "bad");
      if (element.getBoundingClientRect().bottom > innerHeight) composer.scrollIntoView({ block: "nearest" });
    };
  }

  /** Show what ran before this page opened, from the journal. */
  async function remember() {
    const { entries } = await ask(`/journal?${new URLSearchParams({ session: latest().SessionId, action: "InvokeTool", bodies: "true" })}`);
    for (const entry of entries.slice(-MOST_CELLS)) {
      try {
        const { code: source, kernel_name: language } = JSON.parse(JSON.parse(entry.request_body).OperationPayload);
        const { data } = JSON.parse(JSON.parse(entry.response_body).Result.Result);
        if (source === undefined) continue;
        const show = cell(timeOfDay(entry.at), source, language);
        show("started", { execution_count: data.execution_count });
        for (const { output_type: kind, ...content } of data.outputs) show("output", { msg_type: kind, content });
      } catch { /* a command, a refusal, or a body that the journal has cut */ }
    }
  }

  /** @param {string} [again] @param {string} [language] */
  async function execute(again, language = "python") {
    const source = again ?? code.value;
    if (!source.trim() || runs) return;
    if (again === undefined) code.value = "";
    runs = true;
    update();
    const name = crypto.randomUUID();
    const show = cell("you", source, language);
    running.set(name, show);
    try {
      await listening;
      const body = { ...ids(), OperationType: "RunCode", OperationPayload: JSON.stringify({ code: source, ...(again && { kernel_name: language }) }) };
      const { Result } = await act("InvokeTool", body, { [RUN_HEADER]: name });
      say(`The code ended: ${JSON.parse(Result).data?.status ?? "error"}.`);
    } catch (error) {
      running.delete(name);
      show("failed", { error });
    }
    runs = false;
    update();
    code.focus();
    await variables.read();
  }

  /** Show what is run here, by this page and by others. */
  async function follow() {
    try {
      const stream = await open(`/outputs?${new URLSearchParams(key())}`, { signal: closing.signal });
      for await (const { kind, data } of events(stream)) {
        if (kind === "listening") {
          hear();
          continue;
        }
        if (!running.has(data.run)) running.set(data.run, cell("a client", undefined));
        running.get(data.run)?.(kind, data);
        if (kind !== "finished") continue;
        running.delete(data.run);
        await variables.read();
      }
    } catch { /* the page has gone, or the double: its return begins anew */ }
    followed = false;
  }

  function update() {
    const session = living();
    run.disabled = runs || !session;
    stop.disabled = !runs && !session?.busy;
    if (double.status !== "live" || !session || followed) return;
    followed = true;
    if (!cells.firstChild) remember().catch(() => undefined); // the cells that run from now on are shown
    follow();
    variables.read();
  }

  return { element, update, close: () => closing.abort() };
}

/** The variables of a session's Python kernel; to read them is no use of the session.
 * @param {string} path the session's */
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
        : /** @type {Record<string, string>} */ (WHY)[state] ?? "No variable is set yet.");
    } catch (error) {
      if (error instanceof ApiError) setText(note, error.message);
    }
  }

  return { element: h("div", null, rows, note), read };
}
