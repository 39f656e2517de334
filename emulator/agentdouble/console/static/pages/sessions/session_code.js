// Cells in a session's own kernel: those that one runs here, and those that its agent runs.

import { open, lines, events, post } from "../../lib/api.js";
import { attempt } from "../../lib/bar.js";
import { h, say, setText } from "../../lib/dom.js";
import { saveBlob } from "../../lib/files.js";
import { double } from "../../lib/live.js";
import { outputArea } from "../../lib/outputs.js";
import { cellRecord, notebookOf } from "./notebook.js";
import { completions } from "./completions.js";
import { variableTable } from "./variables.js";

const OURS = "run-"; // how the double names the runs that pages ask for
const MOST_CELLS = 100;

/** @param {import("./session.js").Session} session */
export function sessionCode({ id, path, found, shown }) {
  const cells = h("div", { class: "cells", role: "log", "aria-label": "Executions" });
  const variables = variableTable(path);
  const code = h("textarea", { "aria-label": "Code", rows: 3, spellcheck: "false", autocapitalize: "off",
    "aria-keyshortcuts": "Shift+Enter Control+Space", onkeydown: typed,
    placeholder: "Python to run in this session; Shift+Enter runs it, Ctrl+Space completes it" });
  const completed = completions(code, (request) => post("/complete", { ...request, ...named() }));
  const run = h("button", { class: "primary", onclick: () => execute() }, "Run");
  const stop = h("button", { onclick: () => attempt(() => post(`${path}/interrupt`)), disabled: true }, "Interrupt");
  const save = h("button", { onclick: saveNotebook, disabled: true }, "Save as notebook");
  const composer = h("div", { class: "composer" }, code, completed.element, h("div", { class: "buttons" }, run, stop, save));
  const element = h("div", { class: "beside" },
    h("section", { class: "panel", "aria-label": "Code" }, h("h2", null, "Code"), cells, composer),
    h("section", { class: "panel", "aria-label": "Variables" }, h("h2", null, "Variables"), variables.element));
  const closing = new AbortController();
  /** @type {ReturnType<typeof cellRecord>[]} */
  const records = [];
  let runs = false;
  let followed = false;

  const named = () => ({ tool_id: shown().ToolId, user_session_id: shown().UserSessionId });

  /** @param {KeyboardEvent} event */
  function typed(event) {
    const runsIt = event.key === "Enter" && event.shiftKey;
    const completesIt = event.code === "Space" && event.ctrlKey;
    if (!runsIt && !completesIt) return;
    event.preventDefault();
    if (runsIt) execute();
    else attempt(completed.ask);
  }

  function saveNotebook() {
    const text = JSON.stringify(notebookOf(records), null, 1);
    saveBlob(new Blob([text], { type: "application/octet-stream" }), `${shown()?.UserSessionId ?? id}.ipynb`);
    say("The notebook is saved.");
  }

  /** @param {string} by @param {string} [source] */
  function cell(by, source) {
    const area = outputArea();
    const record = cellRecord(by, source);
    const count = h("span", { class: "count" }, "…");
    const made = h("article", { class: "cell" }, h("header", null, count, h("span", null, by)),
      source !== undefined && h("pre", { class: "code" }, source), area.element);
    cells.append(made);
    records.push(record);
    save.disabled = false;
    while (records.length > MOST_CELLS) {
      records.shift();
      cells.firstChild.remove();
    }
    made.scrollIntoView({ block: "nearest" });
    /** @param {string} kind @param {any} event */
    return (kind, event) => {
      if (kind === "started") {
        setText(count, `[${event.execution_count ?? " "}]`);
        record.start(event.language, event.execution_count);
      } else if (kind === "output") {
        area.add(event.msg_type, event.content);
        record.add(event.msg_type, event.content);
      } else if (kind === "dropped") area.note(`${event.messages} outputs were too many to show.`);
      else if (kind === "failed") area.note(event.error.message, "bad");
      else if (kind === "finished" && /^(timeout|interrupted)$/.test(event.status)) area.note(`Ended: ${event.status}.`, "bad");
      if (event.context_lost) area.note("The session's variables are lost.", "bad");
      if (made.getBoundingClientRect().bottom > innerHeight) composer.scrollIntoView({ block: "nearest" });
    };
  }

  async function execute() {
    const source = code.value;
    if (!source.trim() || runs) return;
    code.value = "";
    runs = true;
    update();
    const show = cell("you", source);
    try {
      const answer = await open(`${path}/run`, { method: "POST", body: { code: source } });
      for await (const line of lines(answer)) {
        if (!line) continue;
        const event = JSON.parse(line);
        show(event.event, event);
        if (event.event === "finished") say(`The code has ended: ${event.status}.`);
      }
    } catch (error) {
      show("failed", { error });
    }
    runs = false;
    update();
    code.focus();
    await variables.read();
  }

  /** Show what others run here. */
  async function follow() {
    /** @type {Map<string, ReturnType<typeof cell>>} */
    const others = new Map();
    try {
      const stream = await open(`/outputs?${new URLSearchParams(named())}`, { signal: closing.signal });
      for await (const { kind, data } of events(stream)) {
        if (kind === "listening" || data.run?.startsWith(OURS)) continue;
        if (!others.has(data.run)) others.set(data.run, cell("a client", undefined));
        others.get(data.run)?.(kind, data);
        if (kind !== "finished") continue;
        others.delete(data.run);
        await variables.read();
      }
    } catch { /* the page has gone, or the double: its return begins anew */ }
    followed = false;
  }

  function update() {
    const living = found();
    run.disabled = runs || !living;
    stop.disabled = !runs && !living?.busy;
    if (double.status !== "live" || !living || followed) return;
    followed = true;
    follow();
    variables.read();
  }

  return { element, update, close: () => closing.abort() };
}
