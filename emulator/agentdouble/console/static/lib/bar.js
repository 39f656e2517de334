// The top bar: the connection's status, the platform's time, how to connect a client, and Reset.

import { ask, post } from "./api.js";
import { attempt, confirmThen } from "./attempt.js";
import { copyButton } from "./copy_button.js";
import { dialog } from "./dialog.js";
import { announce, h, setText } from "./dom.js";
import { hms, pluralize, timestamp } from "./format.js";
import { double, now, refresh } from "./live.js";
import { quoted } from "./shell.js";

const STATES = {
  connecting: "Connecting",
  live: "Connected",
  away: "The double does not answer; reconnecting",
  refused: "No access",
};

/** Advance the platform's time and announce how many sessions ended. @param {number} seconds */
async function advanceNow(seconds) {
  await refresh("sessions");
  const previous = double.sessions;
  await post("/clock", { advance_s: seconds });
  await Promise.all([refresh("clock"), refresh("sessions")]);
  const activeIds = new Set(double.sessions.map((session) => session.SessionId));
  const ended = previous.filter((session) => !activeIds.has(session.SessionId)).length;
  announce(`The time is ${timestamp(now())}. ${pluralize(ended, "session")} ended.`);
}

/** Advance the platform's time; ask first if sessions would end. @param {number} seconds */
const advance = (seconds) => attempt(async () => {
  await Promise.all([refresh("clock"), refresh("sessions")]);
  const end = now().getTime() + seconds * 1000;
  const count = double.sessions.filter((session) => Date.parse(session.deadline) <= end).length;
  if (!count) return advanceNow(seconds);
  return confirmThen("Advance the time?", `${pluralize(count, "session")} will end.`, "Advance", () => advanceNow(seconds));
});

export function topBar() {
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  const status = h("span", { class: "status", role: "status" }, STATES.connecting);
  const time = h("time", { class: "time" }, "");
  const offset = h("span", { class: "offset" });
  const jumps = [1, 5, 30].map((minutes) =>
    h("button", { onclick: () => advance(minutes * 60),
      "aria-label": `Advance the time by ${minutes} min` }, `+${minutes} min`));
  const actions = [h("button", { onclick: connect }, "Connect"), h("button", { onclick: reset }, "Reset")];
  const elements = [
    h("a", { class: "brand", href: "/" }, "agentdouble"),
    h("span", { class: "state" }, dot, status),
    h("span", { class: "clock", role: "group", "aria-label": "Platform time" }, time, offset, ...jumps),
    ...actions,
  ];
  const buttons = [...jumps, ...actions];
  return {
    elements,
    update() {
      dot.dataset.status = double.status;
      setText(status, STATES[double.status]);
      for (const button of buttons) button.disabled = double.status !== "live";
      const seconds = Math.round(double.clock?.offset_s ?? 0);
      setText(offset, double.clock?.frozen ? "frozen" : seconds ? `+${hms(seconds)}` : "");
    },
    tick() {
      if (double.clock) setText(time, timestamp(now()));
    },
  };
}

function reset() {
  confirmThen("Reset the double?", "All sessions end. The journal, the faults and the clock are reset.", "Reset", async () => {
    await attempt(() => post("/reset"));
    await attempt(() => Promise.all([refresh("clock"), refresh("sessions"), refresh("requests"), refresh("faults")]));
    announce("The double was reset.");
  });
}

const connect = () => attempt(async () => {
  const connection = await ask("/console/connection");
  /** @param {boolean} masked */
  const exportLines = (masked) => Object.entries(connection.variables).map(([name, value]) =>
    `export ${name}=${masked && /SECRET/.test(name) ? "***" : quoted(value)}`).join("\n");
  const text = h("pre", { role: "group", tabindex: "0", "aria-label": "Variables" }, exportLines(true));
  const show = h("button", { onclick: () => setText(text, exportLines(false)) }, "Show the secret");
  const box = dialog("Connect a client",
    h("p", null, "In another terminal, run ", h("code", null, 'eval "$(agentdouble env)"'), ". It prints:"),
    text,
    h("p", { class: "buttons" }, show, copyButton("Copy with the secret", () => exportLines(false)),
      h("button", { onclick: () => box.close(), autofocus: true }, "Close")));
});
