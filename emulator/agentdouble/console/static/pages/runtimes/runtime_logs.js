// What the instances of a runtime print, as it comes.

import { ApiError, events, open } from "../../lib/api.js";
import { coloured } from "../../lib/ansi.js";
import { h, setText } from "../../lib/dom.js";

const KEPT = 200; // lines
const LONGEST_LINE = 4000;
const PAUSE_MS = 1000;
const DRAWN_MS = 50;

/** @param {string} name */
export function runtimeLogs(name) {
  const lines = h("div", { class: "printed", role: "log", tabindex: "0", "aria-label": "Log" });
  const search = h("input", { type: "search", "aria-label": "Search the log", placeholder: "Text in the line", onchange: () => restart() });
  const only = h("select", { "aria-label": "Instance", onchange: () => restart() }, h("option", { value: "" }, "all instances"));
  const none = h("p", { class: "none" }, "Nothing has been printed yet.");
  let closing = new AbortController();
  let last = ""; // the number of the last line, from which a broken stream resumes

  let come = /** @type {any[]} */ ([]); // and are not drawn yet
  let drawing = 0;

  function draw() {
    drawing = 0;
    const follows = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    lines.append(...come.splice(0).slice(-KEPT).map(({ at, instance, stream, text }) =>
      h("div", { class: `line ${stream}` }, h("time", null, at.slice(11, 23)), h("span", { class: "by" }, instance),
        h("span", null, coloured(text.slice(0, LONGEST_LINE))))));
    while (lines.childElementCount > KEPT) lines.firstChild.remove();
    none.hidden = lines.childElementCount > 0;
    if (follows) lines.scrollTop = lines.scrollHeight;
  }

  async function follow() {
    const { signal } = closing;
    while (!signal.aborted) {
      const query = new URLSearchParams({ follow: "true", tail: String(KEPT), ...(search.value && { search: search.value }),
        ...(only.value && { instance: only.value }) });
      try {
        const stream = await open(`/runtimes/${encodeURIComponent(name)}/logs?${query}`,
          { signal, headers: last ? { "Last-Event-ID": last } : {} });
        for await (const { id, data } of events(stream)) {
          if (signal.aborted) return;
          last = id;
          come.push(data);
          drawing ||= setTimeout(draw, DRAWN_MS);
        }
        return; // the runtime has ended
      } catch (error) {
        if (error instanceof ApiError) return; // the runtime has gone, or that instance's log
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  function restart() {
    closing.abort();
    closing = new AbortController();
    last = "";
    come = [];
    lines.replaceChildren();
    none.hidden = false;
    setText(none, search.value || only.value ? "No line fits." : "Nothing has been printed yet.");
    follow();
  }

  return {
    element: h("section", { class: "panel", "aria-label": "Printed" }, h("h2", null, "Log"),
      h("div", { class: "tools" }, search, only), lines, none),
    restart,
    close: () => closing.abort(),
    /** @param {string[]} instances whose logs are kept */
    of(instances) {
      const wanted = ["", ...instances];
      if (wanted.join() === [...only.options].map((one) => one.value).join()) return;
      const chosen = only.value;
      only.replaceChildren(...wanted.map((one) => h("option", { value: one, selected: one === chosen }, one || "all instances")));
    },
  };
}
