// One MCP service: what stands behind it, what opens it, and its tools to call.

import { navigate } from "../../lib/address.js";
import { ApiError, act, open } from "../../lib/api.js";
import { coloured } from "../../lib/ansi.js";
import { confirmed } from "../../lib/bar.js";
import { h } from "../../lib/dom.js";
import { double } from "../../lib/live.js";
import { accessPanel } from "./access.js";
import { backendCode, changeBackend, isCommand } from "./backend.js";
import { facts } from "./submitting.js";
import { toolsPanel } from "./tool_calls.js";

const LINES = 200; // of a log

/** @param {string} id */
export function service(id) {
  const read = async () => (await act("GetMCPService", { MCPServiceId: id })).MCPService;
  const head = h("div", null, h("p", { class: "none" }, "Reading…"));
  const access = accessPanel(read);
  const tools = toolsPanel();
  const element = h("div", null, head, access.element, tools.element);
  access.element.hidden = tools.element.hidden = true;
  let drawn = "";

  async function update() {
    try {
      const found = await read();
      const text = JSON.stringify(found);
      access.element.hidden = tools.element.hidden = false;
      if (text === drawn) return;
      drawn = text;
      head.replaceChildren(...shown(found));
      access.show(found);
      tools.load(found);
    } catch (error) {
      drawn = "";
      access.element.hidden = tools.element.hidden = true;
      const gone = error instanceof ApiError && error.status === 404;
      head.replaceChildren(h("p", { class: "none" }, gone ? `There is no service ${id}.` : /** @type {Error} */ (error).message));
    }
  }

  /** @param {any} found */
  function shown(found) {
    return [
      h("h2", null, found.Name),
      facts({ Address: h("code", null, double.connection.url + found.Path), Id: found.MCPServiceId,
        Behind: backendCode(found), Protocol: found.ProtocolType, Project: found.ProjectName,
        Created: found.CreatedAt, Changed: found.UpdatedAt }),
      h("p", { class: "buttons" },
        h("button", { onclick: () => changeBackend(found) }, "Change"),
        h("button", { class: "danger", onclick: () => confirmed(`Delete the service ${found.Name}?`,
          "It can no longer be called, and its MCP sessions end.", "Delete", async () => {
            await act("DeleteMCPService", { MCPServiceId: id });
            navigate("/tools");
          }) }, "Delete")),
      isCommand(found) && processLog(found.Name),
    ].filter(Boolean);
  }

  update();
  return { element, update, close: () => tools.close() };
}

/** What the processes of a command have printed, read when it is opened. @param {string} name */
function processLog(name) {
  const text = h("pre", { class: "log", role: "group", tabindex: "0", "aria-label": "Log" });
  const element = h("details", { ontoggle: () => element.open && read() }, h("summary", null, "Log of its processes"), text,
    h("p", { class: "buttons" }, h("button", { onclick: () => read() }, "Read again")));

  async function read() {
    try {
      const printed = await (await open(`/mcp-services/${name}/logs?tail=${LINES}&format=text`)).text();
      text.replaceChildren(...(printed ? printed.split(/(?<=\n)/).flatMap((line) => coloured(line)) : ["Nothing has been printed yet."]));
      text.scrollTop = text.scrollHeight;
    } catch (error) {
      text.replaceChildren(/** @type {Error} */ (error).message);
    }
  }

  return element;
}
