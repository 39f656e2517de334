// The armed faults with their counts, and a form that arms another.

import { ask, post, remove } from "../lib/api.js";
import { attempt } from "../lib/attempt.js";
import { announce, h, list, setText } from "../lib/dom.js";
import { pluralize } from "../lib/format.js";
import { operationOf } from "../lib/journal_entry.js";
import { double, refresh } from "../lib/live.js";
import { FormError, schemaForm } from "../lib/schema_form.js";
import { pathOperation } from "./requests/fault_link.js";

const WHEN = ["nth", "every", "times"]; // shown after the kind's own fields
const MOST_SUGGESTIONS = 50;

export function faults() {
  const rows = h("ul", { class: "armed", "aria-label": "Armed faults" });
  const none = h("p", { class: "none" }, "No faults are armed. Calls get normal answers.");
  const count = h("span", { class: "count", role: "status" });
  const all = h("button", { onclick: () => attempt(async () => {
    await remove("/faults");
    await refresh("faults");
    announce("All faults were removed.");
  }) }, "Remove all");
  const arming = armForm();
  const element = h("div", { class: "stack" }, h("h1", null, "Faults"),
    h("div", { class: "beside" },
      h("section", { class: "panel", "aria-label": "Armed" }, h("div", { class: "title" }, h("h2", null, "Armed"), count, all), rows, none),
      h("section", { class: "panel", "aria-label": "Arm a fault" }, h("h2", null, "Arm a fault"), arming.element)));
  return {
    element,
    update() {
      list(rows, double.faults, (item) => item.id, fault);
      none.hidden = double.faults.length > 0;
      all.hidden = double.faults.length < 2;
      setText(count, pluralize(double.faults.length, "fault"));
      arming.suggest();
    },
    /** @param {string} operation */
    go: (operation) => arming.fill(operation),
  };
}

/** @param {any} first */
function fault(first) {
  const path = `/faults/${encodeURIComponent(first.id)}`;
  const counts = h("p", { class: "hint" });
  const release = h("button", { "aria-label": `Release the calls held by ${first.id}`, onclick: () => attempt(async () => {
    await post(`${path}/release`);
    announce(`The calls held by ${first.id} continue.`);
  }) }, "Release");
  const discard = h("button", { class: "danger", "aria-label": `Remove ${first.id}`, onclick: () => attempt(async () => {
    await remove(path);
    await refresh("faults");
    announce(`${first.id} was removed.`);
  }) }, "Remove");
  const element = h("li", null,
    h("p", null, h("span", { class: "tag", "data-state": "bad" }, first.id), " ", h("strong", null, first.described)),
    counts, h("p", { class: "buttons" }, release, discard));
  element.update = (/** @type {any} */ next) => {
    const isSpent = next.times !== "all" && next.fired >= next.times;
    setText(counts, `happened ${pluralize(next.fired, "time")} · ${pluralize(next.calls, "call")} of the operation`
      + `${isSpent ? " · will not happen again" : ""}`);
    release.hidden = next.kind !== "delay" || next.fired === 0;
  };
  return element;
}

function armForm() {
  let kinds = /** @type {Record<string, any>} */ ({});
  let form = /** @type {ReturnType<typeof schemaForm> | null} */ (null);
  const kind = h("select", { id: "fault-kind", onchange: () => choose(kind.value) });
  const suggestions = h("datalist", { id: "fault-operations" });
  const operation = h("input", { id: "fault-operation", type: "text", list: "fault-operations", spellcheck: "false",
    autocomplete: "off", "aria-required": "true", placeholder: "InvokeTool", "aria-describedby": "fault-operation-hint fault-problem" });
  const what = h("p", { class: "hint" });
  const fields = h("div");
  const problem = h("p", { id: "fault-problem", class: "bad", role: "alert" });
  const element = h("form", { class: "arming", novalidate: true, onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    arm();
  } },
    h("div", { class: "field" }, h("label", { for: "fault-kind" }, "Kind"), kind, what),
    h("div", { class: "field" }, h("label", { for: "fault-operation" }, "Operation"), operation,
      h("small", { id: "fault-operation-hint", class: "hint" }, "An action such as InvokeTool, a path such as POST /v1/bash/exec or /v1/**, mcp:<tool>, a2a:<method>."), problem),
    fields, h("p", { class: "buttons" }, h("button", { class: "primary", type: "submit" }, "Arm")), suggestions);

  /** @param {string} name */
  function choose(name) {
    kind.value = name;
    const { properties, description, ...schema } = kinds[name];
    const { kind: _kind, operation: _operation, ...own } = properties;
    const only = schema["x-only-for"] ? ` Only for ${schema["x-only-for"]}.` : "";
    setText(what, (description.replaceAll("``", "").replace(/\s+/g, " ") + only));
    form = schemaForm({ ...schema, required: [], properties: inOrder(own) }, { label: "Fields of the fault" });
    fields.replaceChildren(form.element);
    setText(problem, "");
  }

  async function arm() {
    setText(problem, "");
    try {
      const fields = Object.entries(form?.read() ?? {}).filter(([name, value]) => !isDefault(kinds[kind.value].properties[name], value));
      const { times, ...others } = Object.fromEntries(fields);
      const repetition = times ? { times: Number(times.replace("once", "1")) || times } : {};
      const armed = await post("/faults", { kind: kind.value, operation: operation.value, ...others, ...repetition });
      await refresh("faults");
      announce(`${armed.id} is armed: ${armed.described}`);
      form?.set({});
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (error instanceof FormError || form?.element.refuse(message)) return;
      setText(problem, message);
      operation.focus();
    }
  }

  ask("/faults/kinds").then((answer) => {
    kinds = answer.kinds;
    kind.replaceChildren(...Object.keys(kinds).map((name) => h("option", { value: name }, name.replaceAll("_", " "))));
    choose(Object.keys(kinds)[0]);
  }).catch((error) => setText(problem, error.message));

  return {
    element,
    /** @param {string} name */
    fill(name) {
      if (!name) return;
      operation.value = name;
      setTimeout(() => operation.focus()); // once the page is shown
    },
    suggest() {
      const names = [...new Set(double.requests.map((request) => suggested(request)).reverse())].slice(0, MOST_SUGGESTIONS);
      list(suggestions, names, (name) => name, (name) => h("option", { value: name }));
    },
  };
}

/** @param {any} entry */
const suggested = (entry) => (operationOf(entry).startsWith("/") ? pathOperation(entry) : operationOf(entry));

/** Put the kind's own fields first, and make "times" a text field, because its default depends on "every".
 * @param {Record<string, any>} properties */
function inOrder(properties) {
  const own = Object.entries(properties).filter(([name]) => !WHEN.includes(name));
  return { ...Object.fromEntries(own),
    nth: properties.nth, every: properties.every,
    times: { ...properties.times, anyOf: null, type: "string", maxLength: 9, default: "", examples: ["once", "2", "3", "all"],
      description: "Empty: once, or every time if Then every is set." } };
}

/** @param {any} schema @param {any} value */
const isDefault = (schema, value) => JSON.stringify(schema?.default) === JSON.stringify(value);
