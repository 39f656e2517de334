// Requests to the double, with the token that this tab keeps.

const KEY = "agentdouble-token";
export const RUN_HEADER = "x-agentdouble-run"; // identifies the outputs of an execution
export const REQUEST_HEADER = "x-agentdouble-request"; // a response's request in the journal

/** An error response of the double. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string | null} [request] its id in the journal */
  constructor(status, message, request = null) {
    super(message);
    this.status = status;
    this.request = request;
  }
}

/** Move the token from the address to this tab's storage. */
export function takeToken() {
  const match = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(KEY, decodeURIComponent(match[1]));
  history.replaceState(null, "", location.pathname + location.search);
}

/** Use a token, or the one in an address that "agentdouble serve" printed, and reload. @param {string} text */
export function useToken(text) {
  sessionStorage.setItem(KEY, decodeURIComponent(/token=([^&]+)/.exec(text)?.[1] ?? text.trim()));
  location.reload();
}

/** @returns {boolean} */
export const hasToken = () => sessionStorage.getItem(KEY) !== null;

/**
 * Send a request to the double and return its response; "/sessions" is its /_emulator/sessions.
 * Throws ApiError for an error response.
 * @param {string} path
 * @param {{method?: string, body?: any, signal?: AbortSignal, headers?: Record<string, string>}} [options]
 * @returns {Promise<Response>}
 */
export async function open(path, { method = "GET", body, signal, headers = {} } = {}) {
  /** @type {Record<string, string>} */
  const sent = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}`, ...headers };
  if (method !== "GET") sent["Content-Type"] = "application/json";
  const response = await fetch(`/api${path}`, {
    method, signal, headers: sent, body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  throw new ApiError(response.status, await errorMessage(response), response.headers.get(REQUEST_HEADER));
}

/** Send a request and return the response's JSON. @param {string} path @param {any} [options] @returns {Promise<any>} */
export async function ask(path, options) {
  return (await open(path, options)).json();
}

/** @param {string} path @param {any} [body] @param {Record<string, string>} [headers] */
export const post = (path, body = {}, headers = {}) => ask(path, { method: "POST", body, headers });

/** Call an action of the control plane and return its Result.
 * @param {string} name @param {any} [body] @param {Record<string, string>} [headers] */
export const act = async (name, body = {}, headers = {}) => (await post(`/console/actions/${name}`, body, headers)).Result;

/** Call a List action until its last page and return all items.
 * @param {string} name @param {string} field the result's field with the items
 * @returns {Promise<any[]>} */
export async function actAll(name, field) {
  const items = [];
  let token = "";
  do {
    const page = await act(name, { MaxResults: 1000, ...(token && { NextToken: token }) });
    items.push(...page[field]);
    token = page.NextToken;
  } while (token);
  return items;
}

/** @param {string} path */
export const remove = (path) => ask(path, { method: "DELETE" });

/** @param {Response} response @returns {Promise<string>} */
async function errorMessage(response) {
  const text = await response.text();
  try {
    const { error, message, detail, ResponseMetadata } = JSON.parse(text);
    const explanation = error?.message ?? ResponseMetadata?.Error?.Message ?? message ?? detail ?? error;
    return typeof explanation === "string" ? explanation : text.slice(0, 300);
  } catch {
    return text.slice(0, 300) || `The double answered ${response.status}.`;
  }
}

/** Yield a response's lines as they arrive; CR, LF or CRLF ends a line. @param {Response} response */
export async function* lines(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let afterCr = false; // the last chunk ended in CR, so a leading LF ends the same line
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const text = decoder.decode(value, { stream: true });
      if (!text) continue;
      const complete = (rest + (afterCr ? text.replace(/^\n/, "") : text)).split(/\r\n|\r|\n/);
      afterCr = text.endsWith("\r");
      rest = /** @type {string} */ (complete.pop());
      yield* complete;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Yield server-sent events as they arrive, with their data as text. EventSource cannot send the
 * token, so this reads a response of fetch. @param {Response} response */
export async function* textEvents(response) {
  let event = { id: "", kind: "message", data: /** @type {string[]} */ ([]) };
  for await (const line of lines(response)) {
    const [, name, value] = /^(\w*):? ?(.*)$/s.exec(line) ?? [];
    if (!line) {
      if (event.data.length) yield { ...event, data: event.data.join("\n") };
      event = { id: event.id, kind: "message", data: [] };
    } else if (name === "data") event.data.push(value);
    else if (name === "event") event.kind = value;
    else if (name === "id") event.id = value;
  }
}

/** Yield server-sent events whose data is JSON. @param {Response} response */
export async function* events(response) {
  for await (const event of textEvents(response)) yield { ...event, data: JSON.parse(event.data) };
}
