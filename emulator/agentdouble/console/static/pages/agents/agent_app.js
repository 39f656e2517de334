// An agent of API-server mode: sessions with a history, state and artifacts.

import { ask, events, open, post, remove } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { h, list, setText } from "../../lib/dom.js";
import { latestEntries, requestIdOf } from "./agent_journal.js";
import { collapsedJson, isPicture, picture } from "./content.js";
import { YOU } from "./turn.js";

/** @typedef {import("./turn.js").Turn} Turn */

/** @param {import("./agent.js").AgentContext} place @returns {import("./agent.js").Protocol} */
export function appAgent({ name, user, session, note }) {
  const sessionsPath = `/served/apps/${encodeURIComponent(name)}/users/${encodeURIComponent(user)}/sessions`;
  const path = `${sessionsPath}/${encodeURIComponent(session)}`;
  const state = h("pre", { role: "group", tabindex: "0", "aria-label": "State of the session" }, "{}");
  const artifacts = artifactList(`${path}/artifacts`);

  /** @param {any} event @param {Turn} turn */
  function show(event, turn) {
    showEvent(event, turn);
    note(titleOf(event), event);
  }

  async function readState() {
    const latest = await ask(path);
    setText(state, JSON.stringify(latest.state ?? {}, null, 2));
    return latest;
  }

  return {
    about: "API-server mode",
    ways: [["increments", "as increments (/run_sse)"], ["events", "event by event (/run_sse)"], ["whole", "as a whole (/run)"]],
    panels: [
      h("section", { class: "panel", "aria-label": "State" }, h("h2", null, "State"), state),
      artifacts.element,
    ],
    begin: async () => (await post(sessionsPath)).id,
    drop: (id) => remove(`${sessionsPath}/${encodeURIComponent(id)}`),
    async sessions() {
      const items = (await ask(sessionsPath)).map((/** @type {any} */ sessions) => (typeof sessions === "string" ? { id: sessions } : sessions));
      return items.sort((/** @type {any} */ a, /** @type {any} */ b) => (b.lastUpdateTime ?? 0) - (a.lastUpdateTime ?? 0));
    },
    async load(conversation) {
      const [current, entries] = await Promise.all([readState(), latestEntries(["/run", "/run_sse"])]);
      let turn = /** @type {Turn | null} */ (null);
      for (const event of current.events ?? []) {
        if (!turn || isYours(event)) {
          turn = conversation.turn();
          turn.request(entries.find((entry) => event.invocationId && entry.response_body.includes(event.invocationId))?.id);
        }
        show(event, turn);
      }
      if (!turn) conversation.none("No messages in this session yet.");
      await artifacts.load();
    },
    async send(text, turn, signal, way) {
      const body = { appName: name, userId: user, sessionId: session,
        newMessage: { role: "user", parts: [{ text }] }, streaming: way === "increments" };
      const response = await open(way === "whole" ? "/served/run" : "/served/run_sse", { method: "POST", body, signal });
      turn.request(requestIdOf(response));
      let savesArtifacts = false;
      const take = (/** @type {any} */ event) => {
        show(event, turn);
        savesArtifacts ||= Object.keys(event.actions?.artifactDelta ?? {}).length > 0;
      };
      if (way === "whole") (await response.json()).forEach(take);
      else for await (const { data } of events(response)) take(data);
      await Promise.all([readState(), savesArtifacts && artifacts.load()]);
    },
  };
}

/** @param {any} event */
function titleOf(event) {
  const parts = event.content?.parts ?? [];
  const call = parts.find((/** @type {any} */ part) => part.functionCall)?.functionCall.name;
  const response = parts.find((/** @type {any} */ part) => part.functionResponse)?.functionResponse.name;
  const what = event.error || event.errorCode ? "error" : call ? `calls ${call}` : response ? `${response} answers`
    : event.partial ? "partial text" : parts.some((/** @type {any} */ part) => part.text) ? "text" : "no content";
  return `${event.author ?? "the platform"}: ${what}`;
}

/** Return whether an event is a user's message; the platform may leave out the author. @param {any} event */
const isYours = ({ author, content }) => (author ? author === "user"
  : content?.role === "user" && content.parts?.some((/** @type {any} */ part) => part.text));

/** @param {any} event @param {Turn} turn */
function showEvent(event, turn) {
  const author = isYours(event) ? YOU : event.author ?? "agent";
  for (const part of event.content?.parts ?? []) showPart(part, author, Boolean(event.partial), turn);
  if (!event.partial) turn.complete();
  const failure = event.error ?? event.errorMessage ?? event.errorCode;
  if (failure) turn.failed(typeof failure === "string" ? failure : JSON.stringify(failure));
}

/** @param {any} part @param {string} author @param {boolean} partial @param {Turn} turn */
function showPart(part, author, partial, turn) {
  if (typeof part.text === "string") {
    if (part.text) turn.text(author, part.text, { partial, thought: Boolean(part.thought) });
  } else if (partial) return;
  else if (part.functionCall) turn.json(author, `calls ${part.functionCall.name}`, part.functionCall.args ?? {});
  else if (part.functionResponse) turn.json(author, `${part.functionResponse.name} answers`, part.functionResponse.response ?? {});
  else if (part.inlineData) turn.data(author, part.inlineData.mimeType ?? "", part.inlineData.data ?? "");
  else turn.json(author, Object.keys(part).join(", ") || "an empty part", part);
}

/** @param {string} path */
function artifactList(path) {
  const items = h("ul", { class: "choices" });
  const content = h("div", { class: "outputs" });
  const none = h("p", { class: "none" }, "None yet.");

  /** @param {string} name */
  const show = (name) => attempt(async () => {
    const at = `${path}/${name.split("/").map(encodeURIComponent).join("/")}`;
    const [part, versions] = await Promise.all([ask(at), ask(`${at}/versions`)]);
    content.replaceChildren(h("h3", null, `${name}, version ${versions.at(-1) ?? 0}`), contentOf(part));
  });

  return {
    element: h("section", { class: "panel", "aria-label": "Artifacts" }, h("h2", null, "Artifacts"), none, items, content),
    async load() {
      const names = await ask(path);
      none.hidden = names.length > 0;
      list(items, names, (name) => String(name), (name) => h("li", null,
        h("button", { class: "quiet", onclick: () => show(name) }, name)));
    },
  };
}

/** @param {any} part */
function contentOf(part) {
  if (typeof part.text === "string") return h("pre", { role: "group", tabindex: "0", "aria-label": "Text" }, part.text);
  const { mimeType = "", data = "" } = part.inlineData ?? {};
  if (isPicture(mimeType)) return picture(mimeType, data, "Picture");
  if (/^(text\/|application\/json)/.test(mimeType)) {
    const bytes = Uint8Array.from(atob(data.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
    return h("pre", { role: "group", tabindex: "0", "aria-label": "Text" }, new TextDecoder().decode(bytes));
  }
  return collapsedJson(mimeType || "Artifact", part);
}
