// A simple application: a prompt in, an answer or a stream of answers out. It keeps no conversation;
// what is shown of earlier ones is what the journal remembers.

import { open, textEvents } from "../../lib/api.js";
import { double } from "../../lib/live.js";
import { parsed } from "../../lib/words.js";
import { addressOf, entriesAt, requestOf } from "./agent_requests.js";

/** @typedef {import("./chat.js").Turn} Turn */

/** @param {import("./agent.js").Place} place @returns {import("./agent.js").Talk} */
export function invokedAgent({ name, user, session, note }) {
  const path = () => addressOf(double.connection.served, name, "/invoke");
  const ofUser = async () => (await entriesAt([path()])).filter((entry) => entry.request_headers.user_id === user);

  /** @param {any} value @param {Turn} turn @param {boolean} partial */
  function take(value, turn, partial) {
    note(`${name}: ${partial ? "part of an answer" : "answer"}`, value);
    if (value && typeof value === "object" && "error" in value) turn.failed(reasonOf(value.error));
    else if (typeof value === "string") turn.says(name, value, { partial });
    else turn.folded(name, "answers", value);
  }

  return {
    about: "Invoke",
    ways: [],
    panels: [],
    begin: async () => `s-${crypto.randomUUID().slice(0, 8)}`,
    async sessions() {
      const ids = (await ofUser()).map((entry) => entry.request_headers.session_id).reverse();
      return [...new Set(ids)].map((id) => ({ id }));
    },
    async load(conversation) {
      const entries = (await ofUser()).filter((entry) => entry.request_headers.session_id === session);
      for (const entry of entries) {
        const turn = conversation.turn();
        turn.request(entry.id);
        turn.says("you", promptOf(entry.request_body));
        if (entry.duration_ms === null) turn.note("The answer has not ended yet.");
        const headers = new Headers({ "content-type": entry.response_headers["content-type"] ?? "" });
        await read(new Response(entry.response_body, { headers }), turn);
      }
      if (!entries.length) conversation.none("The journal has no requests of this session.");
    },
    async send(text, turn, signal) {
      const answer = await open(`/served${path()}`, { method: "POST", body: { prompt: text }, signal,
        headers: { user_id: user, session_id: session } });
      turn.request(requestOf(answer));
      await read(answer, turn);
    },
  };

  /** @param {Response} answer @param {Turn} turn */
  async function read(answer, turn) {
    if (/event-stream/.test(answer.headers.get("content-type") ?? "")) {
      for await (const { data } of textEvents(answer)) take(parsed(data), turn, true);
      turn.whole();
    } else take(parsed(await answer.text()), turn, false);
  }
}

/** @param {any} error */
const reasonOf = (error) => (typeof error === "string" ? error : error?.message ?? JSON.stringify(error));

/** @param {string} body */
function promptOf(body) {
  const prompt = parsed(body)?.prompt;
  return typeof prompt === "string" ? prompt : body;
}
