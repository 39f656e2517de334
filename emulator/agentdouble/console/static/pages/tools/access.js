// What opens a service: its access record, entries for well-known clients, and its keys.

import { act } from "../../lib/api.js";
import { attempt, confirmed, copyButton } from "../../lib/bar.js";
import { h, say, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";

const HIDDEN = "***";

/** @param {any} value */
const json = (value) => JSON.stringify(value, null, 2);

/** How a client writes a server, its address and its headers.
 * @type {Record<string, (name: string, url: string, headers: Record<string, string>) => string>} */
const FORMATS = {
  "Access record": (name, url, headers) => json({ mcpServers: { [name]: { httpUrl: url, headers } } }),
  "Claude Code: .mcp.json": (name, url, headers) => json({ mcpServers: { [name]: { type: "http", url, headers } } }),
  "Cursor: .cursor/mcp.json": (name, url, headers) => json({ mcpServers: { [name]: { url, headers } } }),
  "VS Code: .vscode/mcp.json": (name, url, headers) => json({ servers: { [name]: { type: "http", url, headers } } }),
};

const AUTHORIZER = "InboundAuthorizerConfiguration";

/** @param {any} service @returns {{Name: string, Key: string}[]} */
export const keysOf = (service) => service[AUTHORIZER].Authorizer.KeyAuth.ApiKeys;

/** @param {() => Promise<any>} read the service */
export function accessPanel(read) {
  let service = /** @type {any} */ (null);
  let key = ""; // shown only when asked for
  const format = h("select", { id: "access-format", onchange: () => draw() }, Object.keys(FORMATS).map((name) => h("option", null, name)));
  const which = h("select", { id: "access-key", onchange: () => hide() });
  const whichField = h("div", { class: "field" }, h("label", { for: "access-key" }, "Key"), which);
  const text = h("pre", { role: "group", tabindex: "0", "aria-label": "Access record" });
  const reveal = h("button", { onclick: () => {
    key = key ? "" : keyNow();
    draw();
  } }, "Show the key");
  const name = h("input", { id: "access-new", type: "text", autocomplete: "off", onkeydown: (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") attempt(create);
  } });
  const keys = h("ul", { class: "keys" });
  const element = h("section", { "aria-label": "Access" }, h("h3", null, "Access"),
    h("div", { class: "fields" }, h("div", { class: "field" }, h("label", { for: "access-format" }, "For"), format), whichField), text,
    h("p", { class: "buttons" }, reveal, copyButton("Copy with the key", () => written(keyNow()))),
    h("h3", null, "Keys"), keys,
    h("div", { class: "field" }, h("label", { for: "access-new" }, "Name of a new key"),
      h("div", { class: "tools" }, name, h("button", { onclick: () => attempt(create) }, "New key"))));

  /** @returns {string[]} */
  const names = () => keysOf(service).map((key) => key.Name);
  const keyNow = () => keysOf(service).find((key) => key.Name === which.value)?.Key ?? "";

  /** @param {string} shownKey */
  const written = (shownKey) => FORMATS[format.value](service.Name, double.connection.url + service.Path,
    { Authorization: `Bearer ${shownKey}` });

  function draw() {
    setText(text, written(key || HIDDEN));
    setText(reveal, key ? "Hide the key" : "Show the key");
  }

  function hide() {
    key = "";
    draw();
  }

  /** Set which keys there are, given those that there are now; those that stay keep their values.
   * @param {(names: string[]) => string[]} change */
  async function setKeys(change) {
    service = await read();
    const remaining = change(names());
    const { AuthorizerType, Authorizer: { KeyAuth } } = service[AUTHORIZER];
    const body = { AuthorizerType, Authorizer: { KeyAuth: { ...KeyAuth, ApiKeys: remaining.map((Name) => ({ Name })) } } };
    await act("UpdateMCPService", { MCPServiceId: service.MCPServiceId, [AUTHORIZER]: body });
    show(await read());
  }

  async function create() {
    const newName = name.value.trim();
    if (!newName) return name.focus();
    await setKeys((all) => [...all, newName]);
    name.value = "";
    which.value = newName;
    hide();
    say(`The key ${newName} is made.`);
  }

  /** @param {string} revoked */
  function revoke(revoked) {
    confirmed(`Revoke the key ${revoked}?`, "Clients that send it are refused.", "Revoke", async () => {
      await setKeys((all) => all.filter((name) => name !== revoked));
      say(`The key ${revoked} is revoked.`);
    });
  }

  /** @param {any} next */
  function show(next) {
    const chosen = which.value;
    service = next;
    const all = names();
    which.replaceChildren(...all.map((name) => h("option", null, name)));
    if (all.includes(chosen)) which.value = chosen;
    whichField.hidden = all.length < 2;
    keys.replaceChildren(...all.map((name) => h("li", null, h("span", null, name), all.length > 1
      ? h("button", { class: "danger", "aria-label": `Revoke ${name}`, onclick: () => revoke(name) }, "Revoke")
      : h("small", { class: "hint" }, "You cannot revoke the last key; create a new one first."))));
    hide();
  }

  return { element, show };
}
