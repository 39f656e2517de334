// One MCP service: its backend, its access and its tools.

import { navigate } from "../../lib/address.js";
import { ansiNodes } from "../../lib/ansi.js";
import { ApiError, act, open } from "../../lib/api.js";
import { confirmThen } from "../../lib/attempt.js";
import { factList, h } from "../../lib/dom.js";
import { double } from "../../lib/live.js";
import { accessPanel } from "./access.js";
import { backendCode, changeBackend, isCommand } from "./backend.js";
import { toolsPanel } from "./tool_calls.js";

const LOG_LINES = 200;

/** @param {string} id */
export function service(id) {
  const read = async () => (await act("GetMCPService", { MCPServiceId: id })).MCPService;
  const head = h("div", null, h("p", { class: "none" }, "Loading…"));
  const access = accessPanel(read);
  const tools = toolsPanel();
  const element = h("div", null, head, access.element, tools.element);
  access.element.hidden = tools.element.hidden = true;
  let drawn = "";

  async function update() {
    try {
      const current = await read();
      const text = JSON.stringify(current);
      access.element.hidden = tools.element.hidden = false;
      if (text === drawn) return;
      drawn = text;
      head.replaceChildren(...details(current));
      access.show(current);
      tools.load(current);
    } catch (error) {
      drawn = "";
      access.element.hidden = tools.element.hidden = true;
      const isGone = error instanceof ApiError && error.status === 404;
      head.replaceChildren(h("p", { class: "none" }, isGone ? `There is no service ${id}.` : /** @type {Error} */ (error).message));
    }
  }

  /** @param {any} service */
  function details(service) {
    return [
      h("h2", null, service.Name),
      factList({ Address: h("code", null, double.connection.url + service.Path), Id: service.MCPServiceId,
        Backend: backendCode(service), Protocol: service.ProtocolType, Project: service.ProjectName,
        Created: service.CreatedAt, Changed: service.UpdatedAt }),
      service.ProtocolType === "HTTP" && warnings(service.Name),
      h("p", { class: "buttons" },
        h("button", { onclick: () => changeBackend(service) }, "Change"),
        h("button", { class: "danger", onclick: () => confirmThen(`Delete the service ${service.Name}?`,
          "It can no longer be called, and its MCP sessions end.", "Delete", async () => {
            await act("DeleteMCPService", { MCPServiceId: id });
            navigate("/tools");
          }) }, "Delete")),
      isCommand(service) && processLog(service.Name),
    ].filter(Boolean);
  }

  update();
  return { element, update, close: () => tools.close() };
}

/** What keeps calls of a service from succeeding. @param {string} name */
function warnings(name) {
  const list = h("div", { role: "status" });
  open(`/mcp-services/${name}/warnings`).then((response) => response.json()).then((/** @type {string[]} */ texts) => {
    list.replaceChildren(...texts.map((text) => h("p", { class: "hint" }, `Warning: ${text}`)));
  }, () => {}); // without them, the page is still of use
  return list;
}

/** The output of a command's processes, loaded when it is opened. @param {string} name */
function processLog(name) {
  const text = h("pre", { class: "log", role: "group", tabindex: "0", "aria-label": "Log" });
  const element = h("details", { ontoggle: () => element.open && read() }, h("summary", null, "Log of its processes"), text,
    h("p", { class: "buttons" }, h("button", { onclick: () => read() }, "Reload")));

  async function read() {
    try {
      const printed = await (await open(`/mcp-services/${name}/logs?tail=${LOG_LINES}&format=text`)).text();
      text.replaceChildren(...(printed ? printed.split(/(?<=\n)/).flatMap((line) => ansiNodes(line)) : ["Nothing has been printed yet."]));
      text.scrollTop = text.scrollHeight;
    } catch (error) {
      text.replaceChildren(/** @type {Error} */ (error).message);
    }
  }

  return element;
}
