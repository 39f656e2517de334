// Operations of requests, as faults name them.

import { decoded } from "../../lib/address.js";
import { h } from "../../lib/dom.js";
import { addressOf, parsed } from "../../lib/words.js";

/** A link to the form that arms a fault for the next calls of a request's operation. @param {any} entry */
export function faultLink(entry) {
  const operation = faultOperation(entry);
  return h("p", { class: "hint" }, h("a", { href: `/faults/${encodeURIComponent(operation)}` }, "Arm a fault"), " for ", h("code", null, operation));
}

/** @param {any} entry @returns {string} */
function faultOperation(entry) {
  const { path: whole, query } = addressOf(entry);
  const action = query.get("Action");
  if (entry.method === "POST" && whole === "/" && action) return action;
  const path = whole.replace(/^\/runtimes\/[^/]+(?=\/|$)/, "");
  const call = entry.method === "POST" ? rpc(entry.request_body) : null;
  if (call && `${path}/`.startsWith("/mcp/")) {
    return `mcp:${call.method === "tools/call" ? call.params?.name : call.method}`;
  }
  return call && (path || "/") === "/" ? `a2a:${call.method}` : pathOf(entry);
}

/** @param {any} entry */
export function pathOf(entry) {
  const segments = addressOf(entry).path.split("/").map(decoded);
  return `${entry.method} ${segments.map((segment) => (/[\s*]/.test(segment) ? "*" : segment)).join("/")}`;
}

/** @param {string} body */
function rpc(body) {
  const message = parsed(body);
  return typeof message?.method === "string" ? message : null;
}
