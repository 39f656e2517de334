// One agent: a conversation, and next to it the sessions, events and panels of the agent's protocol.

import { navigate, pathOf, pathSegments } from "../../lib/address.js";
import { confirmThen } from "../../lib/attempt.js";
import { h, list, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";
import { a2aAgent } from "./agent_a2a.js";
import { appAgent } from "./agent_app.js";
import { invokedAgent } from "./agent_invoke.js";
import { chat } from "./chat.js";
import { collapsedJson } from "./content.js";

/**
 * The protocol of an agent. "begin" returns the id of a new session, "load" shows the session's turns,
 * and "send" sends a message and shows the response. "ways" are values and labels of ways to send.
 * @typedef {{about: string, ways: [string, string][], panels: HTMLElement[], noun?: string,
 *   begin: () => Promise<string>, sessions: () => Promise<{id: string}[]>,
 *   drop?: (id: string) => Promise<any>, load: (conversation: ReturnType<typeof chat>) => Promise<any>,
 *   send: (text: string, turn: import("./turn.js").Turn, signal: AbortSignal, way: string) => Promise<any>}} Protocol
 * @typedef {{name: string, user: string, session: string, note: (title: string, value: any) => void,
 *   openSession: (session: string) => void}} AgentContext
 */

const KINDS = /** @type {Record<string, (context: AgentContext) => Protocol>} */ ({
  app: appAgent, invoke: invokedAgent, a2a: a2aAgent });
const MOST_EVENTS = 200;
const MOST_SESSIONS = 100;

/** The first messages of sessions that a page has just started, by path. @type {Map<string, string>} */
const firstMessages = new Map();

export function agent() {
  const [kind, name, ...rest] = pathSegments();
  if (!Object.hasOwn(KINDS, kind) || !name) {
    return { element: h("section", { class: "panel" }, h("h1", null, "This agent does not exist"),
      h("p", { class: "none" }, "See ", h("a", { href: "/agents" }, "Agents"), ".")) };
  }
  const hasUser = kind !== "a2a";
  const [user, session] = hasUser ? [rest[0] || "console", rest[1] ?? ""] : ["", rest[0] ?? ""];
  const pathTo = (/** @type {string[]} */ ...ids) => pathOf("agents", kind, name, ...ids.filter(Boolean));
  const events = eventList();
  const protocol = KINDS[kind]({ name, user, session, note: events.add,
    openSession: (id) => navigate(pathTo(user, id)) });
  const way = h("select", { "aria-label": "Answer" }, protocol.ways.map(([value, label]) => h("option", { value }, label)));
  const conversation = chat(async (text, turn, signal) => {
    if (!session) return begin(text);
    await protocol.send(text, turn, signal, way.value);
    return sessions.has(session) || sessions.load().then(() => true);
  });
  if (protocol.ways.length > 1) conversation.tools.append(way);
  const sessions = sessionList(protocol, session, (id) => pathTo(user, id), () => navigate(pathTo(user)));
  const element = h("div", { class: "stack agent" },
    h("section", { class: "panel" }, h("div", { class: "title" }, h("h1", null, name), h("span", { class: "tag" }, protocol.about)),
      h("div", { class: "facts" }, hasUser && userField(user, (value) => navigate(pathTo(value))),
        h("span", null, session ? `${protocol.noun ?? "Session"} ${session}` : `No ${(protocol.noun ?? "session").toLowerCase()} yet; the first message starts one.`))),
    h("div", { class: "beside" },
      h("section", { class: "panel", "aria-label": "Conversation" }, conversation.element),
      h("div", { class: "stack" }, sessions.element, ...protocol.panels, events.element)));
  const here = location.pathname;
  let shownLoad = 0;
  let loading = false;

  /** @param {string} text */
  async function begin(text) {
    const path = pathTo(user, await protocol.begin());
    firstMessages.set(path, text);
    navigate(path);
    return false;
  }

  async function load() {
    const first = firstMessages.get(here);
    firstMessages.delete(here);
    await sessions.load();
    if (!session) conversation.none("Send a message.");
    else if (first === undefined) {
      conversation.clear();
      events.clear();
      await protocol.load(conversation).catch((error) => conversation.none(error.message));
    }
    conversation.focus();
    if (first !== undefined) conversation.submit(first);
  }

  /** Load the conversation, and again if the double's state was loaded meanwhile. */
  function update() {
    if (double.status !== "live" || shownLoad === double.loads || conversation.busy || loading) return;
    shownLoad = double.loads;
    loading = true;
    load().finally(() => {
      loading = false;
      update();
    });
  }

  return { element, close: () => conversation.stop(), update };
}

/** @param {string} user @param {(user: string) => void} onChange */
function userField(user, onChange) {
  const field = h("input", { value: user, id: "user", size: 14, autocomplete: "off",
    onchange: () => field.value.trim() && onChange(field.value.trim()) });
  return h("span", null, h("label", { for: "user" }, "User "), field);
}

function eventList() {
  const items = h("div", { class: "events" });
  const none = h("p", { class: "none" }, "No events yet.");
  return {
    element: h("section", { class: "panel", "aria-label": "Events" }, h("h2", null, "Events"), none, items),
    /** @param {string} title @param {any} value */
    add(title, value) {
      none.hidden = true;
      items.append(collapsedJson(title, value));
      while (items.childElementCount > MOST_EVENTS) items.firstChild.remove();
    },
    clear() {
      none.hidden = false;
      items.replaceChildren();
    },
  };
}

/** @param {Protocol} protocol @param {string} current @param {(id: string) => string} pathTo @param {() => void} startNew */
function sessionList(protocol, current, pathTo, startNew) {
  const noun = protocol.noun ?? "Session";
  const items = h("ul", { class: "choices" });
  const none = h("p", { class: "none" }, "None yet.");
  let sessions = /** @type {{id: string}[]} */ ([]);
  const element = h("section", { class: "panel", "aria-label": `${noun}s` },
    h("div", { class: "title" }, h("h2", null, `${noun}s`), h("button", { onclick: startNew }, "New")), items, none);

  /** @param {string} id */
  function drop(id) {
    confirmThen(`Delete the ${noun.toLowerCase()}?`, `Its history is deleted too: ${id}`, "Delete", async () => {
      await protocol.drop?.(id);
      if (id === current) startNew();
      else await load();
    });
  }

  async function load() {
    try {
      sessions = (await protocol.sessions()).slice(0, MOST_SESSIONS);
      setText(none, "None yet.");
    } catch (error) {
      sessions = [];
      setText(none, /** @type {Error} */ (error).message);
    }
    none.hidden = sessions.length > 0;
    list(items, sessions, (session) => session.id, (session) => h("li", null,
      h("a", { href: pathTo(session.id), "aria-current": session.id === current && "true" }, session.id),
      protocol.drop && h("button", { class: "quiet", onclick: () => drop(session.id), "aria-label": `Delete ${session.id}` }, "×")));
  }

  return { element, load, has: (/** @type {string} */ id) => sessions.some((session) => session.id === id) };
}
