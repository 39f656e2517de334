// The tools of a service: each with a form of its schema, and what a call of it returns.

import { h, list, say, setText } from "../../lib/dom.js";
import { mcpClient } from "../../lib/mcp.js";
import { schemaForm } from "../../lib/schema_form.js";
import { keysOf } from "./access.js";
import { resultView } from "./tool_result.js";
import { submitting } from "./submitting.js";
import { counted, duration } from "../../lib/words.js";

const LONGEST_NAME = 200;
const MOST = 100; // tools in sight
const LONGEST_DESCRIPTION = 10000;
const HINTS = { readOnlyHint: "only reads", destructiveHint: "destroys", idempotentHint: "idempotent", openWorldHint: "reaches others" };

/** @typedef {ReturnType<typeof mcpClient>} Client */

export function toolsPanel() {
  const heading = h("h3", null, "Tools");
  const rows = h("div", { class: "calls" });
  const note = h("p", { class: "none" });
  const again = h("button", { onclick: () => load() }, "List again");
  const filter = h("input", { type: "search", "aria-label": "Filter tools", placeholder: "Name or description", oninput: () => draw() });
  const element = h("section", { "aria-label": "Tools" }, h("div", { class: "heading" }, heading, again),
    h("div", { class: "tools" }, filter), note, rows);
  let all = /** @type {{tool: any, key: string}[]} */ ([]);
  let client = /** @type {Client | null} */ (null);

  function draw() {
    const word = filter.value.toLowerCase();
    const fit = all.filter(({ tool }) => `${tool.name} ${tool.title ?? ""} ${tool.description ?? ""}`.toLowerCase().includes(word));
    setText(heading, counted(all.length, "tool"));
    filter.hidden = all.length < 10;
    list(rows, fit.slice(0, MOST), (item) => item.key, (item) => toolRow(/** @type {Client} */ (client), item.tool));
    setText(note, !all.length ? "The service has no tools." : !fit.length ? "No tool fits."
      : fit.length > MOST ? `The first ${MOST} of ${fit.length} are shown; filter to see others.` : "");
    note.className = "none";
  }

  /** @param {any} [service] another one, or one that has changed */
  async function load(service) {
    if (service) {
      client?.close();
      client = mcpClient(service.Path, keysOf(service)[0]?.Key ?? "");
    }
    setText(note, "Asking the service…");
    note.className = "none";
    try {
      const tools = await /** @type {Client} */ (client).tools();
      all = tools.map((/** @type {any} */ tool, /** @type {number} */ place) => ({ tool, key: `${place} ${JSON.stringify(tool)}` }));
      draw();
    } catch (error) {
      rows.replaceChildren();
      note.className = "bad";
      setText(note, /** @type {Error} */ (error).message);
    }
  }

  return { element, load, close() {
    for (const row of rows.children) row.close();
    client?.close();
  } };
}

/** @param {Client} client @param {any} tool as MCP describes it */
function toolRow(client, tool) {
  const name = String(tool.name);
  let form = /** @type {ReturnType<typeof submitting> | null} */ (null);
  const element = h("details", { ontoggle: () => {
    if (form || !element.open) return;
    form = callForm(client, tool);
    element.append(form.element);
  } }, h("summary", null, name.slice(0, LONGEST_NAME), tool.title && h("small", null, String(tool.title).slice(0, LONGEST_NAME))),
  tool.description && h("p", { class: "description" }, String(tool.description).slice(0, LONGEST_DESCRIPTION)), hints(tool.annotations));
  element.close = () => form?.close();
  return element;
}

/** @param {any} annotations */
function hints(annotations) {
  const words = Object.entries(HINTS).filter(([name]) => annotations?.[name] === true);
  return words.length > 0 && h("ul", { class: "tags" }, words.map(([, word]) => h("li", { class: "tag" }, word)));
}

/** @param {Client} client @param {any} tool */
function callForm(client, tool) {
  const form = schemaForm(tool.inputSchema, { label: `Arguments of ${String(tool.name).slice(0, LONGEST_NAME)}` });
  const answer = h("div", { class: "answer", role: "group", "aria-label": "Result" });
  let running = /** @type {AbortController | null} */ (null);
  const cancel = h("button", { disabled: true, onclick: () => running?.abort() }, "Cancel");

  /** @param {AbortSignal} closed */
  async function call(closed) {
    const values = form.read();
    running = new AbortController();
    const signal = AbortSignal.any([closed, running.signal]);
    const began = performance.now();
    cancel.disabled = false;
    answer.replaceChildren(h("p", { class: "none" }, "Running…"));
    try {
      const result = await client.call(tool.name, values, signal);
      answer.replaceChildren(...resultView(result, duration(performance.now() - began)));
      say(result.isError ? "The tool has failed." : "The tool has answered.");
    } catch (error) {
      answer.replaceChildren();
      throw running.signal.aborted ? new Error("The call was cancelled.") : error;
    } finally {
      cancel.disabled = true;
    }
  }

  const submission = submitting("Call", call, [form.element], [cancel]);
  submission.element.append(answer);
  return submission;
}
