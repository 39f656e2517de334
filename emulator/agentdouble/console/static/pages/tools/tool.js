// One sandbox tool with its id, fields and sessions, and the form for a new tool.

import { navigate, sessionPath } from "../../lib/address.js";
import { ApiError, act } from "../../lib/api.js";
import { confirmThen } from "../../lib/attempt.js";
import { copyButton } from "../../lib/copy_button.js";
import { announce, factList, h, list, setText } from "../../lib/dom.js";
import { pluralize } from "../../lib/format.js";
import { double } from "../../lib/live.js";
import { schemaForm } from "../../lib/schema_form.js";
import { formDialog, submitForm } from "./submit_form.js";

const TEXT = { type: "string" };
const LINE = { ...TEXT, maxLength: 128 };
const PAIR = { type: "object", required: ["Key", "Value"], properties: { Key: LINE, Value: TEXT } };
const CHANGED = {
  Description: { ...TEXT, examples: ["What it is for"] },
  Envs: { type: "array", title: "Environment variables", items: PAIR, description: "Code in its sessions can read them." },
};
const CREATED = {
  type: "object",
  required: ["Name", "ToolType"],
  properties: {
    Name: { ...LINE, description: "Unique among the tools.", examples: ["my-sandbox"] },
    ToolType: { enum: ["CodeEnv", "All-in-one"], title: "Type", default: "CodeEnv", description: "Their sessions are the same; agents ask for the type." },
    ...CHANGED,
    ProjectName: { ...LINE, title: "Project", examples: ["default"] },
    Tags: { type: "array", items: { ...PAIR, required: ["Key"] } },
  },
};
const MOST_SESSIONS = 50;

/** The form for a new tool; other fields of CreateTool can be entered as JSON. */
export function newTool() {
  const form = schemaForm(CREATED, { label: "Fields" });
  return submitForm("Create", async () => {
    const fields = form.read();
    const { ToolId } = await act("CreateTool", fields);
    announce(`The tool ${fields.Name} was created.`);
    navigate(`/tools/tool/${ToolId}`);
  }, [h("h2", null, "New sandbox tool"),
    h("p", { class: "hint" }, "An agent runs its code in sessions of a tool."), form.element]);
}

/** @param {string} id */
export function tool(id) {
  const element = h("div", null, h("p", { class: "none" }, "Loading…"));
  const heading = h("h3");
  const links = h("ul", { class: "served" });
  let drawn = "";

  async function update() {
    try {
      const current = await act("GetTool", { ToolId: id });
      const text = JSON.stringify(current);
      if (text !== drawn) element.replaceChildren(...details(current));
      drawn = text;
    } catch (error) {
      drawn = "";
      const isGone = error instanceof ApiError && error.status === 404;
      element.replaceChildren(h("p", { class: "none" }, isGone ? `There is no tool ${id}.` : /** @type {Error} */ (error).message));
    }
  }

  /** @param {any} tool */
  function details(tool) {
    return [
      h("h2", null, tool.Name),
      factList({ Type: tool.ToolType, Status: tool.Status, Project: tool.ProjectName, Created: tool.CreatedAt, Changed: tool.UpdatedAt }),
      tool.Description && h("p", null, tool.Description),
      h("p", { class: "buttons" }, h("button", { onclick: () => change(tool) }, "Change"),
        h("button", { class: "danger", onclick: () => confirmThen(`Delete the tool ${tool.Name}?`, "Its sessions end.", "Delete",
          async () => {
            await act("DeleteTool", { ToolId: id });
            navigate("/tools");
          }) }, "Delete")),
      h("h3", null, "TOOL_ID"), copied("Id", id), copied("Export line", exportLine(id)),
      tool.Envs.length > 0 && [h("h3", null, "Environment"), h("dl", { class: "headers" }, tool.Envs.map((/** @type {any} */ variable) =>
        h("div", null, h("dt", null, variable.Key), h("dd", null, variable.Value))))],
      tool.Tags.length > 0 && h("ul", { class: "tags" }, tool.Tags.map((/** @type {any} */ tag) =>
        h("li", { class: "tag" }, tag.Value ? `${tag.Key}: ${tag.Value}` : tag.Key))),
      heading, links,
    ].flat().filter(Boolean);
  }

  /** @param {any} tool */
  function change(tool) {
    const before = { Description: tool.Description, Envs: tool.Envs };
    const form = schemaForm({ type: "object", properties: CHANGED }, { values: before, label: "Fields" });
    formDialog(`Change ${tool.Name}`, [form.element], "Change", async () => {
      await act("UpdateTool", { ToolId: id, ...changes(before, form.read()) });
      announce("The tool was changed.");
    });
  }

  function draw() {
    const ownSessions = double.sessions.filter((session) => session.ToolId === id);
    setText(heading, pluralize(ownSessions.length, "active session"));
    list(links, ownSessions.slice(0, MOST_SESSIONS), (session) => session.SessionId, (session) =>
      h("li", null, h("a", { href: sessionPath(session) }, session.UserSessionId)));
  }

  draw();
  update();
  return { element, update, draw };
}

/** Return the fields that differ. @param {any} before @param {any} after */
function changes(before, after) {
  const fields = { Description: after.Description ?? "", Envs: after.Envs ?? [] };
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) =>
    JSON.stringify(value) !== JSON.stringify(before[name])));
}

/** @param {string} id */
function exportLine(id) {
  const { variables, tool_id: own } = double.connection;
  const name = Object.keys(variables).find((name) => variables[name] === own) ?? "TOOL_ID";
  return `export ${name}=${id}`;
}

/** @param {string} name @param {string} text */
const copied = (name, text) => h("div", { class: "copied" },
  h("pre", { role: "group", tabindex: "0", "aria-label": name }, text), copyButton("Copy", () => text));
