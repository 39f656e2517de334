// A client of an MCP service, over streamable HTTP of version 2025-06-18.

import { open, textEvents } from "./api.js";

const VERSION = "2025-06-18";
const LIST_TIMEOUT_MS = 10000;
const MOST_PAGES = 1000; // a server may send cursors without end

/** @param {string} path of the service @param {string} key */
export function mcpClient(path, key) {
  /** @type {Promise<string> | null} */
  let session = null;
  let lastId = 0;

  /** @param {any} message @param {string} [id] of the session @param {AbortSignal} [signal] */
  function post(message, id, signal) {
    const headers = { Accept: "application/json, text/event-stream", "X-Agentdouble-Key": key,
      ...(id !== undefined && { "MCP-Protocol-Version": VERSION }), ...(id && { "Mcp-Session-Id": id }) };
    return open(`/served${path}`, { method: "POST", body: { jsonrpc: "2.0", ...message }, signal, headers });
  }

  async function initialize() {
    const clientInfo = { name: "agentdouble-console", version: "1" };
    const response = await post({ id: 0, method: "initialize", params: { protocolVersion: VERSION, capabilities: {}, clientInfo } });
    const id = response.headers.get("mcp-session-id") ?? "";
    await resultOf(response, 0);
    await post({ method: "notifications/initialized" }, id);
    return id;
  }

  /** @param {string} method @param {any} params @param {AbortSignal} signal */
  async function request(method, params, signal) {
    const id = (lastId += 1);
    let cancel = () => undefined;
    try {
      session ??= initialize();
      const sessionId = await session;
      signal.throwIfAborted();
      cancel = () => void post({ method: "notifications/cancelled", params: { requestId: id } }, sessionId).catch(() => undefined);
      signal.addEventListener("abort", cancel);
      return await resultOf(await post({ id, method, params }, sessionId, signal), id);
    } catch (error) {
      if (!signal.aborted && !(error instanceof McpError)) session = null; // may have ended
      throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  return {
    /** @returns {Promise<any[]>} */
    async tools() {
      const tools = [];
      const signal = AbortSignal.timeout(LIST_TIMEOUT_MS);
      let cursor = /** @type {string | undefined} */ (undefined);
      for (let page = 0; page < MOST_PAGES; page += 1) {
        /** @type {any} */
        const result = await Promise.race([request("tools/list", cursor === undefined ? {} : { cursor }, signal), timeout(signal)]);
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

/** A JSON-RPC error from the server. */
class McpError extends Error {}

/** Return a promise that rejects when the signal aborts. @param {AbortSignal} signal @returns {Promise<never>} */
const timeout = (signal) => new Promise((_, reject) => {
  signal.addEventListener("abort", () => reject(new Error(`The service did not answer within ${LIST_TIMEOUT_MS / 1000} s.`)));
});

/** @param {Response} response @param {number} id */
async function resultOf(response, id) {
  if (/event-stream/.test(response.headers.get("content-type") ?? "")) {
    for await (const { data } of textEvents(response)) {
      const message = data && JSON.parse(data);
      if (message?.id === id) return checked(message);
    }
    throw new Error("The service ended its response without a result.");
  }
  return checked(await response.json());
}

/** @param {any} message */
function checked({ error, result }) {
  if (error) throw new McpError(error.message);
  return result;
}
