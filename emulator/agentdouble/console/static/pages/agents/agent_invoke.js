// A simple application: a prompt in, a response or a stream out. It keeps no conversation; earlier turns
// come from the journal.

import { open, textEvents } from "../../lib/api.js";
import { parseJson } from "../../lib/json.js";
import { double } from "../../lib/live.js";
import { applicationPath, latestEntries, requestIdOf } from "./agent_journal.js";

/** @typedef {import("./turn.js").Turn} Turn */

/** @param {import("./agent.js").AgentContext} place @returns {import("./agent.js").Protocol} */
export function invokedAgent({ name, user, session, note }) {
  const path = () => applicationPath(double.connection.served, name, "/invoke");
  const requestsOfUser = async () => (await latestEntries([path()])).filter((entry) => entry.request_headers.user_id === user);

  /** @param {any} value @param {Turn} turn @param {boolean} partial */
  function show(value, turn, partial) {
    note(`${name}: ${partial ? "partial response" : "response"}`, value);
    if (value && typeof value === "object" && "error" in value) turn.failed(errorText(value.error));
    else if (typeof value === "string") turn.text(name, value, { partial });
    else turn.json(name, "answers", value);
  }

  return {
    about: "Invoke",
    ways: [],
    panels: [],
    begin: async () => `s-${crypto.randomUUID().slice(0, 8)}`,
    async sessions() {
      const ids = (await requestsOfUser()).map((entry) => entry.request_headers.session_id).reverse();
      return [...new Set(ids)].map((id) => ({ id }));
    },
    async load(conversation) {
      const entries = (await requestsOfUser()).filter((entry) => entry.request_headers.session_id === session);
      for (const entry of entries) {
        const turn = conversation.turn();
        turn.request(entry.id);
        turn.text("you", promptOf(entry.request_body));
        if (entry.duration_ms === null) turn.note("The response is not complete yet.");
        const headers = new Headers({ "content-type": entry.response_headers["content-type"] ?? "" });
        await read(new Response(entry.response_body, { headers }), turn);
      }
      if (!entries.length) conversation.none("The journal has no requests of this session.");
    },
    async send(text, turn, signal) {
      const response = await open(`/served${path()}`, { method: "POST", body: { prompt: text }, signal,
        headers: { user_id: user, session_id: session } });
      turn.request(requestIdOf(response));
      await read(response, turn);
    },
  };

  /** @param {Response} response @param {Turn} turn */
  async function read(response, turn) {
    if (/event-stream/.test(response.headers.get("content-type") ?? "")) {
      for await (const { data } of textEvents(response)) show(parseJson(data), turn, true);
      turn.complete();
    } else show(parseJson(await response.text()), turn, false);
  }
}

/** @param {any} error */
const errorText = (error) => (typeof error === "string" ? error : error?.message ?? JSON.stringify(error));

/** @param {string} body */
function promptOf(body) {
  const prompt = parseJson(body)?.prompt;
  return typeof prompt === "string" ? prompt : body;
}
