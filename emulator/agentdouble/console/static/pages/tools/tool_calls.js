// The tools of a service, with a form to call each of them and the result.

import { copyButton } from "../../lib/copy_button.js";
import { announce, h, list, setText } from "../../lib/dom.js";
import { duration, pluralize } from "../../lib/format.js";
import { prettyJson } from "../../lib/json.js";
import { mcpClient } from "../../lib/mcp.js";
import { schemaForm } from "../../lib/schema_form.js";
import { keysOf } from "./access.js";
import { submitForm } from "./submit_form.js";

const LONGEST_NAME = 200;
const MOST = 100; // tools that are shown
const LONGEST_DESCRIPTION = 10000;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];
const LONGEST_TEXT = 200000; // characters of one part that are shown
const MOST_PARTS = 100;
const HINTS = { readOnlyHint: "read-only", destructiveHint: "destructive", idempotentHint: "idempotent", openWorldHint: "open world" };

/** @typedef {ReturnType<typeof mcpClient>} Client */

export function toolsPanel() {
  const heading = h("h3", null, "Tools");
  const rows = h("div", { class: "calls" });
  const note = h("p", { class: "none" });
  const reload = h("button", { onclick: () => load() }, "Reload");
  const filter = h("input", { type: "search", "aria-label": "Filter tools", placeholder: "Name or description", oninput: () => draw() });
  const element = h("section", { "aria-label": "Tools" }, h("div", { class: "heading" }, heading, reload),
    h("div", { class: "tools" }, filter), note, rows);
  let all = /** @type {{tool: any, key: string}[]} */ ([]);
  let client = /** @type {Client | null} */ (null);

  function draw() {
    const word = filter.value.toLowerCase();
    const matching = all.filter(({ tool }) => `${tool.name} ${tool.title ?? ""} ${tool.description ?? ""}`.toLowerCase().includes(word));
    setText(heading, pluralize(all.length, "tool"));
    filter.hidden = all.length < 10;
    list(rows, matching.slice(0, MOST), (item) => item.key, (item) => toolRow(/** @type {Client} */ (client), item.tool));
    setText(note, !all.length ? "The service has no tools." : !matching.length ? "No tools match."
      : matching.length > MOST ? `The first ${MOST} of ${matching.length} are shown; filter to see others.` : "");
    note.className = "none";
  }

  /** @param {any} [service] a new or changed service */
  async function load(service) {
    if (service) {
      client?.close();
      client = mcpClient(service.Path, keysOf(service)[0]?.Key ?? "");
    }
    setText(note, "Asking the service…");
    note.className = "none";
    try {
      const tools = await /** @type {Client} */ (client).tools();
      all = tools.map((/** @type {any} */ tool, /** @type {number} */ index) => ({ tool, key: `${index} ${JSON.stringify(tool)}` }));
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

/** @param {Client} client @param {any} tool as listed by the server */
function toolRow(client, tool) {
  const name = String(tool.name);
  let form = /** @type {ReturnType<typeof submitForm> | null} */ (null);
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
    const start = performance.now();
    cancel.disabled = false;
    answer.replaceChildren(h("p", { class: "none" }, "Running…"));
    try {
      const result = await client.call(tool.name, values, signal);
      answer.replaceChildren(...resultView(result, duration(performance.now() - start)));
      announce(result.isError ? "The tool failed." : "The tool answered.");
    } catch (error) {
      answer.replaceChildren();
      throw running.signal.aborted ? new Error("The call was cancelled.") : error;
    } finally {
      cancel.disabled = true;
    }
  }

  const submission = submitForm("Call", call, [form.element], [cancel]);
  submission.element.append(answer);
  return submission;
}

/** Show a tool's MCP result: text and pictures, which cannot act on the page.
 * @param {any} result @param {string} time how long the call took */
function resultView(result, time) {
  const parts = Array.isArray(result.content) ? result.content : [];
  const state = result.isError ? "worse" : "ok";
  return [
    h("p", { class: "facts" }, h("span", { class: "tag", "data-state": state }, result.isError ? "error" : "ok"),
      h("span", null, time), copyButton("Copy as JSON", () => JSON.stringify(result, null, 2))),
    ...parts.slice(0, MOST_PARTS).map(part),
    parts.length > MOST_PARTS && h("p", { class: "none" }, `and ${parts.length - MOST_PARTS} more parts`),
    result.structuredContent !== undefined && text("Structured content", JSON.stringify(result.structuredContent, null, 2)),
  ].filter(Boolean);
}

/** @param {any} item an item of content */
function part(item) {
  if (item?.type === "text") return text("Text", prettyJson(String(item.text)) ?? String(item.text));
  if (item?.type === "image" && PICTURES.includes(item.mimeType)) return picture(item);
  if (item?.type === "resource" && typeof item.resource?.text === "string") {
    return text(`Resource ${String(item.resource.uri)}`, item.resource.text);
  }
  const bytes = item?.data ?? item?.resource?.blob;
  if (typeof bytes !== "string") return text(String(item?.type ?? "Part"), JSON.stringify(item, null, 2));
  const kind = item.mimeType ?? item.resource?.mimeType ?? "unknown type";
  return h("p", { class: "none" }, `${item.type}, ${String(kind).slice(0, 100)}, ${bytes.length} characters of base64`);
}

/** Show a picture in an image, in which the scripts of an SVG do not run. @param {any} item */
function picture(item) {
  return h("img", { class: "out", alt: "Picture of the result", src: `data:${item.mimeType};base64,${String(item.data).replace(/\s/g, "")}` });
}

/** @param {string} title @param {string} content */
function text(title, content) {
  const rest = content.length - LONGEST_TEXT;
  return h("div", { class: "part" }, h("h3", null, title.slice(0, 200)),
    h("pre", { role: "group", tabindex: "0", "aria-label": title.slice(0, 200) }, content.slice(0, LONGEST_TEXT)),
    rest > 0 && h("p", { class: "none" }, `and ${rest} more characters`));
}
