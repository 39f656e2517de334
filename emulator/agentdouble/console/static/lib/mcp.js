// A client of an MCP service, by the streamable HTTP of version 2025-06-18.

import { open, textEvents } from "./api.js";

const VERSION = "2025-06-18";
const LISTED_MS = 10000; // a list takes no longer
const PAGES = 1000; // a list that never ends is cut off

/** @param {string} path of the service @param {string} key */
export function mcpClient(path, key) {
  /** @type {Promise<string> | null} */
  let session = null;
  let number = 0;

  /** @param {any} message @param {string} [id] of the session @param {AbortSignal} [signal] */
  function post(message, id, signal) {
    const headers = { Accept: "application/json, text/event-stream", "X-Agentdouble-Key": key,
      ...(id !== undefined && { "MCP-Protocol-Version": VERSION }), ...(id && { "Mcp-Session-Id": id }) };
    return open(`/served${path}`, { method: "POST", body: { jsonrpc: "2.0", ...message }, signal, headers });
  }

  async function begin() {
    const clientInfo = { name: "agentdouble-console", version: "1" };
    const answer = await post({ id: 0, method: "initialize", params: { protocolVersion: VERSION, capabilities: {}, clientInfo } });
    const id = answer.headers.get("mcp-session-id") ?? "";
    await resultOf(answer, 0);
    await post({ method: "notifications/initialized" }, id);
    return id;
  }

  /** @param {string} method @param {any} params @param {AbortSignal} signal */
  async function request(method, params, signal) {
    const id = (number += 1);
    let cancel = () => undefined;
    try {
      session ??= begin();
      const within = await session;
      signal.throwIfAborted();
      cancel = () => void post({ method: "notifications/cancelled", params: { requestId: id } }, within).catch(() => undefined);
      signal.addEventListener("abort", cancel);
      return await resultOf(await post({ id, method, params }, within, signal), id);
    } catch (error) {
      if (!signal.aborted && !(error instanceof McpError)) session = null; // it may have ended
      throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  return {
    /** @returns {Promise<any[]>} */
    async tools() {
      const tools = [];
      const signal = AbortSignal.timeout(LISTED_MS);
      let cursor = /** @type {string | undefined} */ (undefined);
      for (let page = 0; page < PAGES; page += 1) {
        /** @type {any} */
        const result = await Promise.race([request("tools/list", cursor === undefined ? {} : { cursor }, signal), late(signal)]);
        tools.push(...result.tools);
        cursor = result.nextCursor;
        if (cursor === undefined) break;
      }
      return tools;
    },
    /** @param {string} name @param {any} arguments_ @param {AbortSignal} signal */
    call: (name, arguments_, signal) => request("tools/call", { name, arguments: arguments_ }, signal),
    async close() {
      const id = await session?.catch(() => "");
      session = null;
      const headers = { "X-Agentdouble-Key": key, "Mcp-Session-Id": id ?? "" };
      if (id) await open(`/served${path}`, { method: "DELETE", headers }).catch(() => undefined);
    },
  };
}

/** What a server answers in place of a result. */
class McpError extends Error {}

/** Reject when a signal says so. @param {AbortSignal} signal @returns {Promise<never>} */
const late = (signal) => new Promise((_, reject) => {
  signal.addEventListener("abort", () => reject(new Error(`The service did not answer within ${LISTED_MS / 1000} s.`)));
});

/** @param {Response} answer @param {number} id */
async function resultOf(answer, id) {
  if (/event-stream/.test(answer.headers.get("content-type") ?? "")) {
    for await (const { data } of textEvents(answer)) {
      const message = data && JSON.parse(data);
      if (message?.id === id) return checked(message);
    }
    throw new Error("The service ended its answer without a result.");
  }
  return checked(await answer.json());
}

/** @param {any} message */
function checked({ error, result }) {
  if (error) throw new McpError(error.message);
  return result;
}
