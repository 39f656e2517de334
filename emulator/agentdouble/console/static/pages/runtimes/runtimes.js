// The runtimes: applications in processes of their own, each at /runtimes/NAME.

import { navigate, pathOf } from "../../lib/address.js";
import { act, ask } from "../../lib/api.js";
import { h, setText, table } from "../../lib/dom.js";
import { double, newsOf } from "../../lib/live.js";
import { mebibytes } from "../../lib/words.js";
import { runtimeForm } from "./runtime_form.js";

const EVERY_S = 2; // instances are no events, so they are looked at while they are shown

/** "ok", "bad" or "worse" for a status, "" for one that passes. @param {string} status */
export const lightOf = (status) => (status === "Ready" ? "ok" : status === "Error" ? "worse" : /ing$/.test(status) ? "bad" : "");

export function runtimes() {
  const rows = table({
    label: "Runtimes",
    columns: ["Runtime", "Status", "Version", "Instances", "Requests now", "Memory"],
    height: 36,
    className: "hosted",
    key: (one) => one.name,
    row: () => {
      const name = h("a");
      const status = h("span", { class: "tag" });
      const [version, instances, now, memory] = [1, 2, 3, 4].map(() => h("span", { class: "number" }));
      const row = h("div", null, h("span", null, name), h("span", null, status), version, instances, now, memory);
      row.update = (/** @type {any} */ one) => {
        const total = (/** @type {string} */ field) => one.instances.reduce((/** @type {number} */ all, /** @type {any} */ next) => all + next[field], 0);
        setText(name, one.name);
        name.setAttribute("href", pathOf("runtimes", one.name));
        setText(status, one.status);
        status.dataset.state = lightOf(one.status);
        setText(version, one.version);
        setText(instances, one.instances.length || (one.status === "Error" ? "none" : "asleep"));
        setText(now, total("in_flight"));
        setText(memory, mebibytes(total("memory_bytes")));
      };
      return row;
    },
  });
  const filter = h("input", { type: "search", "aria-label": "Filter runtimes", placeholder: "Name or status",
    "aria-keyshortcuts": "/", oninput: () => draw() });
  const none = h("p", { class: "none" });
  const create = h("button", { onclick: () => runtimeForm("Create a runtime", null, async (fields) => {
    await act("CreateRuntime", fields);
    navigate(pathOf("runtimes", fields.Name));
  }) }, "Create a runtime");
  const element = h("div", { class: "stack" }, h("h1", { class: "sr" }, "Runtimes"), h("div", { class: "tools" }, filter, create),
    h("section", { class: "panel", "aria-label": "Hosted" }, h("h2", null, "Runtimes"), rows.element, none));
  let found = /** @type {any[]} */ ([]);
  let read = "";
  let ticks = 0;

  function draw() {
    const word = filter.value.toLowerCase();
    const shown = found.filter((one) => `${one.name} ${one.status}`.toLowerCase().includes(word));
    rows.show(shown);
    rows.element.hidden = !shown.length;
    none.hidden = shown.length > 0;
    setText(none, found.length ? "No runtime fits." : "No runtime is there. Create one from a command, or declare it in [[runtimes]] of agentdouble.toml.");
  }

  async function load() {
    try {
      found = (await ask("/runtimes")).runtimes;
      draw();
    } catch { /* the double does not answer; the bar says so */ }
  }

  return {
    element,
    filter,
    move: (/** @type {number} */ by) => {
      if (rows.move(by)) rows.element.querySelector(".current a")?.focus();
    },
    update() {
      const news = newsOf("runtime");
      if (double.status !== "live" || read === news) return;
      read = news;
      load();
    },
    tick() {
      ticks += 1;
      if (double.status === "live" && ticks % EVERY_S === 0 && !document.hidden) load();
    },
  };
}
