// What is always in sight: is the double there, what time does it think it is, where can it be reached.

import { ask, post } from "./api.js";
import { dialog, h, say, setText } from "./dom.js";
import { double, now, read } from "./live.js";
import { counted, span, stamp } from "./words.js";

const STATES = {
  connecting: "Connecting",
  live: "Connected",
  away: "The double does not answer; reconnecting",
  refused: "No access",
};

/** Move the platform's time. @param {number} seconds */
async function travel(seconds) {
  await read("sessions");
  const before = double.sessions;
  await post("/clock", { advance_s: seconds });
  await Promise.all([read("clock"), read("sessions")]);
  const alive = new Set(double.sessions.map((session) => session.SessionId));
  const ended = before.filter((session) => !alive.has(session.SessionId)).length;
  say(`The time is ${stamp(now())}. ${counted(ended, "session")} ended.`);
}

/** Move the time; ask first if sessions would end, by what the double says now. @param {number} seconds */
const advance = (seconds) => attempt(async () => {
  await Promise.all([read("clock"), read("sessions")]);
  const end = now().getTime() + seconds * 1000;
  const count = double.sessions.filter((session) => Date.parse(session.deadline) <= end).length;
  if (!count) return travel(seconds);
  return confirmed("Advance the time?", `${counted(count, "session")} will end.`, "Advance", () => travel(seconds));
});

export function topBar() {
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  const status = h("span", { class: "status", role: "status" }, STATES.connecting);
  const time = h("time", { class: "time" }, "");
  const offset = h("span", { class: "offset" });
  const jump = [1, 5, 30].map((minutes) =>
    h("button", { onclick: () => advance(minutes * 60),
      "aria-label": `Advance the time by ${minutes} min` }, `+${minutes} min`));
  const elements = [
    h("a", { class: "brand", href: "/" }, "agentdouble"),
    h("span", { class: "state" }, dot, status),
    h("span", { class: "clock", role: "group", "aria-label": "Platform time" }, time, offset, ...jump),
    h("button", { onclick: connect }, "Connect"),
    h("button", { onclick: reset }, "Reset"),
  ];
  return {
    elements,
    update() {
      dot.dataset.status = double.status;
      setText(status, STATES[double.status]);
      const away = double.status !== "live";
      for (const button of [...jump, elements[3], elements[4]]) button.disabled = away;
      const seconds = Math.round(double.clock?.offset_s ?? 0);
      setText(offset, double.clock?.frozen ? "stands still" : seconds ? `+${span(seconds)}` : "");
    },
    tick() {
      if (double.clock) setText(time, stamp(now()));
    },
  };
}

/** Do something, and show why it failed. @param {() => Promise<any>} what */
export async function attempt(what) {
  try {
    await what();
  } catch (error) {
    const close = h("button", { onclick: () => box.close(), autofocus: true }, "Close");
    const box = dialog("That did not work", h("p", null, /** @type {Error} */ (error).message),
      h("p", { class: "buttons" }, close));
  }
}

/** Ask before something ends; then do it, and show why it failed.
 * @param {string} title @param {string | Node} text @param {string} verb @param {() => Promise<any>} what */
export function confirmed(title, text, verb, what) {
  const box = dialog(title, h("p", null, text), h("p", { class: "buttons" },
    h("button", { onclick: () => box.close(), autofocus: true }, "Cancel"),
    h("button", { class: "danger", onclick: () => {
      box.close();
      attempt(what);
    } }, verb)));
}

function reset() {
  confirmed("Reset the double?", "All sessions end. The journal, the faults and the clock are reset.", "Reset", async () => {
    await attempt(() => post("/reset"));
    await attempt(() => Promise.all([read("clock"), read("sessions"), read("requests"), read("faults")]));
    say("The double is reset.");
  });
}

const connect = () => attempt(async () => {
  const connection = await ask("/console/connection");
  /** @param {boolean} hidden */
  const exports_ = (hidden) => Object.entries(connection.variables).map(([name, value]) =>
    `export ${name}=${hidden && /SECRET/.test(name) ? "***" : quoted(value)}`).join("\n");
  const text = h("pre", { role: "group", tabindex: "0", "aria-label": "Variables" }, exports_(true));
  const show = h("button", { onclick: () => setText(text, exports_(false)) }, "Show the secret");
  const box = dialog("Connect a client",
    h("p", null, "In another terminal: ", h("code", null, 'eval "$(agentdouble env)"'), ", which is"),
    text,
    h("p", { class: "buttons" }, show, copyButton("Copy with the secret", () => exports_(false)),
      h("button", { onclick: () => box.close(), autofocus: true }, "Close")));
});

/** @param {string} value */
export const quoted = (value) => (/^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`);

/** A button that copies text. @param {string} name @param {() => string | Promise<string>} text */
export function copyButton(name, text) {
  const button = h("button", {
    onclick: () => attempt(async () => {
      await navigator.clipboard.writeText(await text());
      setText(button, "Copied");
      say("Copied");
      setTimeout(() => setText(button, name), 1500);
    }),
  }, name);
  return button;
}
