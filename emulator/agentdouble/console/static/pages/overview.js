// The overview: figures, active sessions, latest requests and what the double serves.

import { ask } from "../lib/api.js";
import { copyButton } from "../lib/copy_button.js";
import { h, list, setText } from "../lib/dom.js";
import { newestFirst, outcome } from "../lib/journal_entry.js";
import { double, versionOf } from "../lib/live.js";
import { requestTable } from "./requests/request_table.js";
import { sessionTable } from "./sessions/session_table.js";

// a label, a function that returns the figure, and the page with more about it
const FIGURES = /** @type {[string, () => string | number, string][]} */ ([
  ["sessions", () => double.sessions.length, "/sessions"],
  ["requests", () => double.requests.length, "/requests"],
  ["failed", () => double.requests.filter((request) => /bad|worse/.test(outcome(request))).length, "/requests"],
  ["median ms", () => Math.round(median(double.requests.map((request) => request.duration_ms)
    .filter((duration) => duration !== null)) ?? 0), "/requests"],
  ["guesses", () => new Set(double.requests.flatMap((request) => request.unknowns)).size, "/unknowns"],
  ["faults armed", () => double.faults.length, "/faults"],
]);

export function overview() {
  const figures = FIGURES.map(([name, value, path]) => {
    const number = h("strong", null, "0");
    return { element: h("a", { class: "figure", href: path }, number, h("span", null, name)), number, value };
  });
  const active = sessionTable();
  const latest = requestTable("Latest requests");
  const served = h("ul", { class: "surfaces" });
  const address = h("code");
  let shownVersion = "";
  const columns = h("div", { class: "columns" },
    h("section", { class: "panel", "aria-label": "Sessions" }, h("h2", null, "Sessions"), active.element),
    h("section", { class: "panel", "aria-label": "Latest requests" },
      h("h2", null, "Latest requests"), latest.element));
  const full = h("div", { class: "overview" },
    h("div", { class: "figures" }, figures.map((figure) => figure.element)),
    columns,
    h("section", { class: "panel" }, h("h2", null, "What is served at ", address), served));
  const empty = h("section", { class: "panel empty" });
  const element = h("div", { class: "stack" }, h("h1", null, "Overview"), empty, full);

  async function showSurfaces() {
    const version = `${versionOf("tool", "service", "runtime")} ${double.sessions.length}`;
    if (double.status !== "live" || version === shownVersion) return;
    shownVersion = version;
    const { surfaces } = await ask("/surfaces").catch(() => ({ surfaces: [] })); // the double has gone
    if (version === shownVersion && surfaces.length) list(served, surfaces, ({ name }) => name, surface);
  }

  return {
    element,
    update() {
      for (const { number, value } of figures) setText(number, value());
      const isUnused = !double.requests.length && !double.sessions.length && !double.ended.length;
      empty.hidden = !isUnused;
      columns.hidden = isUnused;
      if (isUnused && !empty.firstChild) empty.append(...firstSteps());
      latest.show(newestFirst(double.requests.slice(-100)));
      active.show(double.sessions);
      setText(address, double.connection.url);
      showSurfaces();
    },
    tick: active.tick,
    move: latest.move,
  };
}

/** @param {{name: string, state: string, paths: Record<string, string>}} first */
function surface({ name, paths }) {
  const state = h("span", { class: "tag" });
  const row = h("li", null, h("strong", null, name), h("span", null, state),
    h("span", null, Object.entries(paths).map(([path, about]) => h("code", { title: about }, path))));
  row.update = (/** @type {{state: string}} */ next) => {
    state.hidden = !next.state;
    setText(state, next.state);
  };
  return row;
}

/** Return the median, or null without numbers. @param {number[]} numbers */
function median(numbers) {
  if (!numbers.length) return null;
  return numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

function firstSteps() {
  const { url, ca_file, keyed } = double.connection;
  const trust = ca_file ? `--cacert '${ca_file}' ` : "";
  const key = keyed ? "-H 'Authorization: Bearer <the API key>' " : "";
  const text = `curl ${trust}${url}/invoke ${key}\\\n  -H 'user_id: ann' -H 'session_id: s1' \\\n`
    + `  -d '{"prompt": "print(6 * 7)"}'`;
  return [h("h2", null, "Send a first request"),
    h("p", null, "Run this in a terminal. The built-in agent runs the code in a session, and both appear here."),
    h("pre", { role: "group", tabindex: "0", "aria-label": "First request" }, text),
    h("p", { class: "buttons" }, copyButton("Copy", () => text))];
}
