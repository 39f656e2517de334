// Faults for the operation of a request: armed by a click, or by the form of the page of faults.

import { decoded, navigate } from "../../lib/address.js";
import { post } from "../../lib/api.js";
import { attempt } from "../../lib/bar.js";
import { h } from "../../lib/dom.js";
import { read } from "../../lib/live.js";
import { addressOf } from "../../lib/words.js";

const FAULTS = /** @type {[string, Record<string, any>][]} */ ([
  ["Fail the next with 429", { kind: "fail", status: 429 }],
  ["Gateway failure", { kind: "gateway" }],
  ["Delay the next by 2 s", { kind: "delay", seconds: 2 }],
]);

/** What to do with the next calls of a request's operation. @param {any} entry */
export function faultButtons(entry) {
  const operation = faultOperation(entry);
  const told = h("p", { role: "status", class: "hint" });
  const buttons = FAULTS.map(([name, fault]) => h("button", { onclick: () => attempt(async () => {
    const armed = await post("/faults", { ...fault, operation });
    await read("faults");
    told.replaceChildren(h("a", { href: "/faults" }, armed.id), ` is armed: ${armed.described}`);
  }) }, name));
  return h("section", { "aria-label": "Arm a fault" }, h("h3", null, "Arm a fault"),
    h("p", { class: "hint" }, "For ", h("code", null, operation), ":"),
    h("p", { class: "buttons" }, buttons,
      h("button", { onclick: () => navigate(`/faults/${encodeURIComponent(operation)}`) }, "Another fault…")), told);
}

/** The operation of a request as faults name it. @param {any} entry @returns {string} */
export function faultOperation(entry) {
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
  return `${entry.method} ${segments.map((one) => (/[\s*]/.test(one) ? "*" : one)).join("/")}`;
}

/** @param {string} body */
function rpc(body) {
  try {
    const message = JSON.parse(body);
    return typeof message?.method === "string" ? message : null;
  } catch {
    return null;
  }
}
