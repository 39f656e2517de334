// A link that arms a fault for a request's operation.

import { decoded } from "../../lib/address.js";
import { h } from "../../lib/dom.js";
import { pathAndQuery } from "../../lib/journal_entry.js";
import { parseJson } from "../../lib/json.js";

/** Link to the form that arms a fault for the next calls of a request's operation. @param {any} entry */
export function faultLink(entry) {
  const operation = faultOperation(entry);
  return h("p", { class: "hint" }, h("a", { href: `/faults/${encodeURIComponent(operation)}` }, "Arm a fault"), " for ", h("code", null, operation));
}

/** Return a request's operation as faults name it. @param {any} entry @returns {string} */
function faultOperation(entry) {
  const { path: whole, query } = pathAndQuery(entry);
  const action = query.get("Action");
  if (entry.method === "POST" && whole === "/" && action) return action;
  const path = whole.replace(/^\/runtimes\/[^/]+(?=\/|$)/, "");
  const call = entry.method === "POST" ? rpc(entry.request_body) : null;
  if (call && `${path}/`.startsWith("/mcp/")) {
    return `mcp:${call.method === "tools/call" ? call.params?.name : call.method}`;
  }
  return call && (path || "/") === "/" ? `a2a:${call.method}` : pathOperation(entry);
}

/** Return the operation of a path: method and path, with * for segments that faults cannot name.
 * @param {any} entry */
export function pathOperation(entry) {
  const segments = pathAndQuery(entry).path.split("/").map(decoded);
  return `${entry.method} ${segments.map((segment) => (/[\s*]/.test(segment) ? "*" : segment)).join("/")}`;
}

/** @param {string} body */
function rpc(body) {
  const message = parseJson(body);
  return typeof message?.method === "string" ? message : null;
}
