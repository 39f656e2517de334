// Requests to the double, with the token that only this tab knows.

const KEY = "agentdouble-token";
export const RUN_HEADER = "x-agentdouble-run"; // names the outputs of an execution
export const REQUEST_HEADER = "x-agentdouble-request"; // an answer's request in the journal

/** An answer that is an error: what the double said about it. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string | null} [request] its id in the journal */
  constructor(status, message, request = null) {
    super(message);
    this.status = status;
    this.request = request;
  }
}

/** Take the token from the address, keep it for this tab, and take it out of sight. */
export function takeToken() {
  const match = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(KEY, decodeURIComponent(match[1]));
  history.replaceState(null, "", location.pathname + location.search);
}

/** Use the token of an address that agentdouble serve printed, or a token itself. @param {string} text */
export function useToken(text) {
  sessionStorage.setItem(KEY, decodeURIComponent(/token=([^&]+)/.exec(text)?.[1] ?? text.trim()));
  location.reload();
}

/** @returns {boolean} */
export const hasToken = () => sessionStorage.getItem(KEY) !== null;

/**
 * Ask the double; "/sessions" is what its own /_emulator/sessions answers.
 * @param {string} path
 * @param {{method?: string, body?: any, signal?: AbortSignal, headers?: Record<string, string>}} [options]
 * @returns {Promise<Response>}
 */
export async function open(path, { method = "GET", body, signal, headers = {} } = {}) {
  /** @type {Record<string, string>} */
  const sent = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}`, ...headers };
  if (method !== "GET") sent["Content-Type"] = "application/json";
  const answer = await fetch(`/api${path}`, {
    method, signal, headers: sent, body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (answer.ok) return answer;
  throw new ApiError(answer.status, await reason(answer), answer.headers.get(REQUEST_HEADER));
}

/** Ask for JSON. @param {string} path @param {any} [options] @returns {Promise<any>} */
export async function ask(path, options) {
  return (await open(path, options)).json();
}

/** @param {string} path @param {any} [body] @param {Record<string, string>} [headers] */
export const post = (path, body = {}, headers = {}) => ask(path, { method: "POST", body, headers });

/** Call an action of the control plane; return its result.
 * @param {string} name @param {any} [body] @param {Record<string, string>} [headers] */
export const act = async (name, body = {}, headers = {}) => (await post(`/console/actions/${name}`, body, headers)).Result;

/** Call a List action for all of its pages. @param {string} name @param {string} field of the items
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

/** @param {Response} answer @returns {Promise<string>} */
async function reason(answer) {
  const text = await answer.text();
  try {
    const { error, message, detail, ResponseMetadata } = JSON.parse(text);
    const explanation = error?.message ?? ResponseMetadata?.Error?.Message ?? message ?? detail ?? error;
    return typeof explanation === "string" ? explanation : text.slice(0, 300);
  } catch {
    return text.slice(0, 300) || `The double answered ${answer.status}.`;
  }
}

/** Yield the lines of an answer as they come; CR, LF or both end them. @param {Response} answer */
export async function* lines(answer) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let afterCr = false; // which ended a line already; a newline now belongs to it
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const text = decoder.decode(value, { stream: true });
      if (!text) continue;
      const parts = (rest + (afterCr ? text.replace(/^\n/, "") : text)).split(/\r\n|\r|\n/);
      afterCr = text.endsWith("\r");
      rest = /** @type {string} */ (parts.pop());
      yield* parts;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Yield server-sent events as they come, their data as text; fetch can send the token, EventSource
 * cannot. @param {Response} answer */
export async function* textEvents(answer) {
  let event = { id: "", kind: "message", data: /** @type {string[]} */ ([]) };
  for await (const line of lines(answer)) {
    const [, name, value] = /^(\w*):? ?(.*)$/s.exec(line) ?? [];
    if (!line) {
      if (event.data.length) yield { ...event, data: event.data.join("\n") };
      event = { id: event.id, kind: "message", data: [] };
    } else if (name === "data") event.data.push(value);
    else if (name === "event") event.kind = value;
    else if (name === "id") event.id = value;
  }
}

/** Yield server-sent events whose data is JSON. @param {Response} answer */
export async function* events(answer) {
  for await (const event of textEvents(answer)) yield { ...event, data: JSON.parse(event.data) };
}
