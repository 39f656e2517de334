// One session: run code in its own kernel, see what its agent runs, prolong, pause or end it.

import { ApiError, ask, events, lines, open, post, remove } from "../lib/api.js";
import { attempt } from "../lib/bar.js";
import { dialog, h, say, setText } from "../lib/dom.js";
import { double, read } from "../lib/live.js";
import { outputArea } from "../lib/outputs.js";
import { remaining } from "./session_table.js";
import { variableTable } from "./variables.js";
import { span, stamp } from "../lib/words.js";

const OURS = "run-"; // how the double names the runs that pages ask for

/** @param {string} id */
export function session(id) {
  const path = `/sessions/${encodeURIComponent(id)}`;
  const title = h("h1", null, id);
  const state = h("span", { class: "tag" });
  const rest = h("span");
  const facts = h("dl", { class: "facts" });
  const cells = h("div", { class: "cells", role: "log", "aria-label": "Executions" });
  const variables = variableTable(path);
  const code = h("textarea", { "aria-label": "Code", rows: 3, spellcheck: "false", autocapitalize: "off",
    placeholder: "Python to run in this session; Shift+Enter runs it", onkeydown: typed });
  const run = h("button", { class: "primary", onclick: () => execute() }, "Run");
  const stop = h("button", { onclick: () => attempt(() => post(`${path}/interrupt`)), disabled: true }, "Interrupt");
  const act = (/** @type {() => Promise<any>} */ what) => () => attempt(async () => {
    await what();
    await read("sessions");
  });
  const pause = h("button", { onclick: act(() => post(`${path}/${found()?.state === "paused" ? "resume" : "pause"}`)) }, "Pause");
  const actions = h("p", { class: "buttons" }, pause,
    h("button", { onclick: act(() => post(`${path}/ttl`, { ttl_s: 1800 })) }, "30 min anew"),
    h("button", { onclick: act(() => post(`${path}/ttl`, { ttl_s: 10 })) }, "End in 10 s"),
    h("button", { class: "danger", onclick: end }, "End now"));
  const log = h("pre", { class: "log", role: "group", tabindex: "0", "aria-label": "Log" });
  const composer = h("div", { class: "composer" }, code, h("div", { class: "buttons" }, run, stop));
  const work = h("div", { class: "beside" },
    h("section", { class: "panel", "aria-label": "Code" }, h("h2", null, "Code"), cells, composer),
    h("section", { class: "panel", "aria-label": "Variables" }, h("h2", null, "Variables"), variables.element));
  const history_ = h("section", { class: "panel", "aria-label": "Log" }, h("h2", null, "Log"), log);
  const over = h("p", { class: "none", role: "status" });
  const element = h("div", { class: "stack session" },
    h("section", { class: "panel" }, h("div", { class: "title" }, title, state, rest), facts, actions, over), work, history_);
  const closing = new AbortController();
  let followed = "";
  let logged = "";

  async function readLog() {
    try {
      setText(log, (await ask(`${path}/log`)).Logs || "Nothing has happened yet.");
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) setText(log, "The double has no log of this session.");
    }
  }

  const found = () => double.sessions.find((one) => one.SessionId === id);

  /** @param {KeyboardEvent} event */
  function typed(event) {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    execute();
  }

  /** @param {string} by @param {string} [source] */
  function cell(by, source) {
    const area = outputArea();
    const count = h("span", { class: "count" }, "…");
    const made = h("article", { class: "cell" }, h("header", null, count, h("span", null, by)),
      source !== undefined && h("pre", { class: "code" }, source), area.element);
    cells.append(made);
    while (cells.childElementCount > 100) cells.firstChild.remove();
    made.scrollIntoView({ block: "nearest" });
    /** @param {string} kind @param {any} event */
    return (kind, event) => {
      if (kind === "started") setText(count, `[${event.execution_count ?? " "}]`);
      else if (kind === "output") area.add(event.msg_type, event.content);
      else if (kind === "dropped") area.note(`${event.messages} outputs were too many to show.`);
      else if (kind === "failed") area.note(event.error.message, "bad");
      else if (kind === "finished" && /^(timeout|interrupted)$/.test(event.status)) area.note(`Ended: ${event.status}.`, "bad");
      if (event.context_lost) area.note("The session's variables are lost.", "bad");
      if (made.getBoundingClientRect().bottom > innerHeight) composer.scrollIntoView({ block: "nearest" });
    };
  }

  async function execute() {
    const source = code.value;
    if (!source.trim() || run.disabled) return;
    code.value = "";
    run.disabled = true;
    stop.disabled = false;
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
    run.disabled = found() === undefined;
    stop.disabled = true;
    code.focus();
    await variables.read();
  }

  /** Show what others run here. @param {any} living */
  async function follow(living) {
    /** @type {Map<string, ReturnType<typeof cell>>} */
    const runs = new Map();
    const query = new URLSearchParams({ user_session_id: living.UserSessionId, tool_id: living.ToolId });
    try {
      const stream = await open(`/outputs?${query}`, { signal: closing.signal });
      for await (const { kind, data } of events(stream)) {
        if (kind === "listening" || data.run?.startsWith(OURS)) continue;
        if (!runs.has(data.run)) runs.set(data.run, cell("a client", undefined));
        runs.get(data.run)?.(kind, data);
        if (kind !== "finished") continue;
        runs.delete(data.run);
        await variables.read();
      }
    } catch { /* the page has gone, or the double: its return begins anew */ }
    followed = "";
  }

  function end() {
    const box = dialog("End this session?", h("p", null, "Its kernel and its files go with it."),
      h("p", { class: "buttons" }, h("button", { onclick: () => box.close(), autofocus: true }, "Cancel"),
        h("button", { class: "danger", onclick: () => {
          box.close();
          act(() => remove(path))();
        } }, "End")));
  }

  return {
    element,
    close: () => closing.abort(),
    update() {
      const living = found();
      const past = double.ended.findLast((one) => one.SessionId === id);
      const shown = living ?? past;
      const news = `${double.status} ${shown?.state} ${shown?.executions} ${shown?.deadline}`;
      if (double.status === "live" && news !== logged) readLog();
      logged = news;
      history_.hidden = !shown;
      setText(title, shown?.UserSessionId ?? id);
      setText(state, shown?.state ?? "unknown");
      state.dataset.state = shown?.state ?? "unknown";
      actions.hidden = work.hidden = !living;
      over.hidden = Boolean(living);
      if (living) {
        setText(pause, living.state === "paused" ? "Resume" : "Pause");
        if (double.status === "live" && followed !== id) {
          followed = id;
          follow(living);
          variables.read();
        }
      } else if (past) setText(over, `Ended ${stamp(new Date(past.ended_at))}: ${past.reason}.`);
      else setText(over, "The double has no such session, and does not remember that one has ended.");
      facts.replaceChildren(...Object.entries(factsOf(shown)).map(([name, value]) =>
        h("div", null, h("dt", null, name), h("dd", null, value))));
    },
    tick() {
      const living = found();
      setText(rest, living ? `${span(remaining(living))} left` : "");
    },
  };
}

/** @param {any} shown */
function factsOf(shown) {
  if (!shown) return {};
  const { SessionId, ToolId, executions, pids = [], home, memory_bytes } = shown;
  return { Id: SessionId, Tool: ToolId, Runs: executions,
    ...(pids.length && { Processes: pids.join(", ") }), ...(home && { Files: home }),
    ...(memory_bytes && { Memory: `${Math.round(memory_bytes / 2 ** 20)} MiB` }) };
}
