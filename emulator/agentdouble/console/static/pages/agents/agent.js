// One agent: the conversation, and beside it its sessions, its events, and what else it has.

import { navigate, parts, pathOf } from "../../lib/address.js";
import { confirmed } from "../../lib/bar.js";
import { h, list, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";
import { a2aAgent } from "./agent_a2a.js";
import { appAgent } from "./agent_app.js";
import { invokedAgent } from "./agent_invoke.js";
import { chat, folded } from "./chat.js";

/**
 * How one talks to an agent. "begin" returns the id of a new session, "load" shows what has been said
 * in the session, "send" says something and shows what comes of it.
 * @typedef {{about: string, ways: [string, string][], panels: HTMLElement[], noun?: string,
 *   begin: () => Promise<string>, sessions: () => Promise<{id: string}[]>,
 *   drop?: (id: string) => Promise<any>, load: (talk: ReturnType<typeof chat>) => Promise<any>,
 *   send: (text: string, turn: import("./chat.js").Turn, signal: AbortSignal, way: string) => Promise<any>}} Talk
 * @typedef {{name: string, user: string, session: string, note: (title: string, value: any) => void,
 *   moved: (session: string) => void}} Place
 */

const KINDS = /** @type {Record<string, (place: Place) => Talk>} */ ({
  app: appAgent, invoke: invokedAgent, a2a: a2aAgent });
const EVENTS_KEPT = 200;
const LISTED = 100; // sessions

/** What is to be said first in a session that a page has just begun. @type {Map<string, string>} */
const waiting = new Map();

export function agent() {
  const [kind, name, ...rest] = parts();
  if (!Object.hasOwn(KINDS, kind) || !name) {
    return { element: h("section", { class: "panel" }, h("h1", null, "There is no such agent"),
      h("p", { class: "none" }, "See ", h("a", { href: "/agents" }, "Agents"), ".")) };
  }
  const hasUser = kind !== "a2a";
  const [user, session] = hasUser ? [rest[0] || "console", rest[1] ?? ""] : ["", rest[0] ?? ""];
  const pathTo = (/** @type {string[]} */ ...ids) => pathOf("agents", kind, name, ...ids.filter(Boolean));
  const events = eventList();
  const talk = KINDS[kind]({ name, user, session, note: events.add,
    moved: (id) => navigate(pathTo(user, id)) });
  const way = h("select", { "aria-label": "Answer" }, talk.ways.map(([value, label]) => h("option", { value }, label)));
  const conversation = chat(async (text, turn, signal) => {
    if (!session) return begin(text);
    await talk.send(text, turn, signal, way.value);
    return sessions.has(session) || sessions.load().then(() => true);
  });
  if (talk.ways.length > 1) conversation.tools.append(way);
  const sessions = sessionList(talk, session, (id) => pathTo(user, id), () => navigate(pathTo(user)));
  const element = h("div", { class: "stack agent" },
    h("section", { class: "panel" }, h("div", { class: "title" }, h("h1", null, name), h("span", { class: "tag" }, talk.about)),
      h("div", { class: "facts" }, hasUser && userField(user, (value) => navigate(pathTo(value))),
        h("span", null, session ? `${talk.noun ?? "Session"} ${session}` : `No ${(talk.noun ?? "session").toLowerCase()} yet; the first message starts one.`))),
    h("div", { class: "beside" },
      h("section", { class: "panel", "aria-label": "Conversation" }, conversation.element),
      h("div", { class: "stack" }, sessions.element, ...talk.panels, events.element)));
  const here = location.pathname;
  let read = 0;
  let loading = false;

  /** @param {string} text */
  async function begin(text) {
    const path = pathTo(user, await talk.begin());
    waiting.set(path, text);
    navigate(path);
    return false;
  }

  async function load() {
    const first = waiting.get(here);
    waiting.delete(here);
    await sessions.load();
    if (!session) conversation.none("Say something.");
    else if (first === undefined) {
      conversation.clear();
      events.clear();
      await talk.load(conversation).catch((error) => conversation.none(error.message));
    }
    conversation.focus();
    if (first !== undefined) conversation.submit(first);
  }

  /** Read all of it, and once more if the double was reset meanwhile. */
  function update() {
    if (double.status !== "live" || read === double.reads || conversation.busy || loading) return;
    read = double.reads;
    loading = true;
    load().finally(() => {
      loading = false;
      update();
    });
  }

  return { element, close: () => conversation.stop(), update };
}

/** @param {string} user @param {(user: string) => void} changed */
function userField(user, changed) {
  const field = h("input", { value: user, id: "user", size: 14, autocomplete: "off",
    onchange: () => field.value.trim() && changed(field.value.trim()) });
  return h("span", null, h("label", { for: "user" }, "User "), field);
}

function eventList() {
  const items = h("div", { class: "events" });
  const none = h("p", { class: "none" }, "No event has come yet.");
  return {
    element: h("section", { class: "panel", "aria-label": "Events" }, h("h2", null, "Events"), none, items),
    /** @param {string} title @param {any} value */
    add(title, value) {
      none.hidden = true;
      items.append(folded(title, value));
      while (items.childElementCount > EVENTS_KEPT) items.firstChild.remove();
    },
    clear() {
      none.hidden = false;
      items.replaceChildren();
    },
  };
}

/** @param {Talk} talk @param {string} current @param {(id: string) => string} pathTo @param {() => void} anew */
function sessionList(talk, current, pathTo, anew) {
  const noun = talk.noun ?? "Session";
  const items = h("ul", { class: "choices" });
  const none = h("p", { class: "none" }, "None yet.");
  let sessions = /** @type {{id: string}[]} */ ([]);
  const element = h("section", { class: "panel", "aria-label": `${noun}s` },
    h("div", { class: "title" }, h("h2", null, `${noun}s`), h("button", { onclick: anew }, "New")), items, none);

  /** @param {string} id */
  function drop(id) {
    confirmed(`Delete the ${noun.toLowerCase()}?`, `Its history is deleted too: ${id}`, "Delete", async () => {
      await talk.drop?.(id);
      if (id === current) anew();
      else await load();
    });
  }

  async function load() {
    try {
      sessions = (await talk.sessions()).slice(0, LISTED);
      setText(none, "None yet.");
    } catch (error) {
      sessions = [];
      setText(none, /** @type {Error} */ (error).message);
    }
    none.hidden = sessions.length > 0;
    list(items, sessions, (session) => session.id, (session) => h("li", null,
      h("a", { href: pathTo(session.id), "aria-current": session.id === current && "true" }, session.id),
      talk.drop && h("button", { class: "quiet", onclick: () => drop(session.id), "aria-label": `Delete ${session.id}` }, "×")));
  }

  return { element, load, has: (/** @type {string} */ id) => sessions.some((session) => session.id === id) };
}
