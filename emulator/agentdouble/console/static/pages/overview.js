// Everything at a glance, and the slider that says who ends before one travels.

import { attempt, copyButton, travel } from "../lib/bar.js";
import { h, list, setText } from "../lib/dom.js";
import { double } from "../lib/live.js";
import { plot } from "../lib/plot.js";
import { counted, median, newestFirst, outcome, span } from "../lib/words.js";
import { requestTable } from "./requests/request_table.js";
import { sessionTable } from "./sessions/session_table.js";

// what is counted, how many there are, and the page that has more of them
const FIGURES = /** @type {[string, () => string | number, string][]} */ ([
  ["sessions", () => double.sessions.length, "/sessions"],
  ["requests", () => double.requests.length, "/requests"],
  ["failed", () => double.requests.filter((one) => /bad|worse/.test(outcome(one))).length, "/requests"],
  ["median ms", () => Math.round(median(double.requests.map((one) => one.duration_ms)
    .filter((one) => one !== null)) ?? 0), "/requests"],
  ["guesses", () => new Set(double.requests.flatMap((one) => one.unknowns)).size, "/unknowns"],
  ["faults armed", () => double.faults.length, "/faults"],
]);

export function overview() {
  const figures = FIGURES.map(([name, value, path]) => {
    const number = h("strong", null, "0");
    return { element: h("a", { class: "figure", href: path }, number, h("span", null, name)), number, value };
  });
  const rate = plot("Requests/s", String);
  let newest = /** @type {number | null} */ (null);
  const living = sessionTable();
  const latest = requestTable("Latest requests");
  const slider = h("input", { type: "range", id: "travel", min: 0, max: 3600, step: 15, value: "0",
    oninput: () => foretell() });
  const foretold = h("output", { for: "travel" });
  const go = h("button", { class: "primary", onclick: () => attempt(async () => {
    await travel(Number(slider.value));
    slider.value = "0";
    foretell();
  }) }, "Travel");
  const served = h("ul", { class: "served" });
  const columns = h("div", { class: "columns" },
    h("section", { class: "panel", "aria-label": "Sessions" }, h("h2", null, "Sessions"), living.element,
      h("div", { class: "travel" }, h("label", { for: "travel" }, "Travel in time"), slider, foretold, go)),
    h("section", { class: "panel", "aria-label": "Latest requests" },
      h("h2", null, "Latest requests"), latest.element));
  const full = h("div", { class: "overview" },
    h("div", { class: "figures" }, figures.map((one) => one.element), h("div", { class: "figure" }, rate.element)),
    columns,
    h("section", { class: "panel" }, h("h2", null, "What is served"), served));
  const empty = h("section", { class: "panel empty" });
  const element = h("div", { class: "stack" }, h("h1", { class: "sr" }, "Overview"), empty, full);

  function foretell() {
    const seconds = Number(slider.value);
    const ending = double.sessions.filter((one) => living.remaining(one) <= seconds).length;
    living.strike(seconds);
    go.disabled = !seconds;
    slider.setAttribute("aria-valuetext", `${span(seconds)} ahead, ${counted(ending, "session")} would end`);
    setText(foretold, seconds ? `+${span(seconds)}: ${ending ? counted(ending, "session") : "no session"} `
      + `${ending > 1 ? "end" : "ends"}` : "now");
  }

  return {
    element,
    update() {
      for (const { number, value } of figures) setText(number, value());
      const bare = !double.requests.length && !double.sessions.length && !double.ended.length;
      empty.hidden = !bare;
      columns.hidden = bare;
      if (bare && !empty.firstChild) empty.append(...firstSteps());
      latest.show(newestFirst(double.requests.slice(-100)));
      living.show(double.sessions);
      list(served, Object.entries(double.connection?.served ?? {}), ([path]) => path, ([path, name]) =>
        h("li", null, h("strong", null, name), " ", h("code", null, double.connection.url + path)));
      foretell();
    },
    tick: () => {
      const now = double.requests.at(-1)?.id ?? 0;
      if (newest !== null) rate.add(Math.max(0, now - newest));
      newest = now;
      living.tick();
      foretell();
    },
    move: latest.move,
  };
}

function firstSteps() {
  const { url, ca_file, keyed } = double.connection;
  const trust = ca_file ? `--cacert '${ca_file}' ` : "";
  const key = keyed ? "-H 'Authorization: Bearer <the API key>' " : "";
  const text = `curl ${trust}${url}/invoke ${key}\\\n  -H 'user_id: ann' -H 'session_id: s1' \\\n`
    + `  -d '{"prompt": "print(6 * 7)"}'`;
  return [h("h2", null, "Send a first request"),
    h("p", null, "In a terminal: the shipped coder runs the code in a session, and both appear here."),
    h("pre", { role: "group", tabindex: "0", "aria-label": "First request" }, text),
    h("p", { class: "buttons" }, copyButton("Copy", () => text))];
}
