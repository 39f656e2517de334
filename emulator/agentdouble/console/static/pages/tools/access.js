// Access to a service: its access record, the configuration of well-known clients, and its keys.

import { act } from "../../lib/api.js";
import { attempt, confirmThen } from "../../lib/attempt.js";
import { copyButton } from "../../lib/copy_button.js";
import { announce, h, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";

const MASK = "***";

/** @param {any} value */
const json = (value) => JSON.stringify(value, null, 2);

/** A client's configuration for a server, by client.
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

/** @param {() => Promise<any>} read returns the service */
export function accessPanel(read) {
  let service = /** @type {any} */ (null);
  let key = ""; // empty while it is hidden
  const format = h("select", { id: "access-format", onchange: () => draw() }, Object.keys(FORMATS).map((name) => h("option", null, name)));
  const keyChoice = h("select", { id: "access-key", onchange: () => hide() });
  const keyField = h("div", { class: "field" }, h("label", { for: "access-key" }, "Key"), keyChoice);
  const text = h("pre", { role: "group", tabindex: "0", "aria-label": "Access record" });
  const reveal = h("button", { onclick: () => {
    key = key ? "" : chosenKey();
    draw();
  } }, "Show the key");
  const name = h("input", { id: "access-new", type: "text", autocomplete: "off", onkeydown: (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") attempt(create);
  } });
  const keys = h("ul", { class: "keys" });
  const element = h("section", { "aria-label": "Access" }, h("h3", null, "Access"),
    h("div", { class: "fields" }, h("div", { class: "field" }, h("label", { for: "access-format" }, "For"), format), keyField), text,
    h("p", { class: "buttons" }, reveal, copyButton("Copy with the key", () => configuration(chosenKey()))),
    h("h3", null, "Keys"), keys,
    h("div", { class: "field" }, h("label", { for: "access-new" }, "Name of a new key"),
      h("div", { class: "tools" }, name, h("button", { onclick: () => attempt(create) }, "New key"))));

  /** @returns {string[]} */
  const names = () => keysOf(service).map((key) => key.Name);
  const chosenKey = () => keysOf(service).find((key) => key.Name === keyChoice.value)?.Key ?? "";

  /** @param {string} shownKey */
  const configuration = (shownKey) => FORMATS[format.value](service.Name, double.connection.url + service.Path,
    { Authorization: `Bearer ${shownKey}` });

  function draw() {
    setText(text, configuration(key || MASK));
    setText(reveal, key ? "Hide the key" : "Show the key");
  }

  function hide() {
    key = "";
    draw();
  }

  /** Change which keys exist; keys that stay keep their values.
   * @param {(names: string[]) => string[]} change maps the current names to the new ones */
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
    keyChoice.value = newName;
    hide();
    announce(`The key ${newName} was created.`);
  }

  /** @param {string} revoked */
  function revoke(revoked) {
    confirmThen(`Revoke the key ${revoked}?`, "Clients that send it are refused.", "Revoke", async () => {
      await setKeys((all) => all.filter((name) => name !== revoked));
      announce(`The key ${revoked} was revoked.`);
    });
  }

  /** @param {any} next */
  function show(next) {
    const chosen = keyChoice.value;
    service = next;
    const all = names();
    keyChoice.replaceChildren(...all.map((name) => h("option", null, name)));
    if (all.includes(chosen)) keyChoice.value = chosen;
    keyField.hidden = all.length < 2;
    keys.replaceChildren(...all.map((name) => h("li", null, h("span", null, name), all.length > 1
      ? h("button", { class: "danger", "aria-label": `Revoke ${name}`, onclick: () => revoke(name) }, "Revoke")
      : h("small", { class: "hint" }, "You cannot revoke the last key; create a new one first."))));
    hide();
  }

  return { element, show };
}
