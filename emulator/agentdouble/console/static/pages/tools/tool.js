// One sandbox tool: its id for clients, its fields, its sessions; and a new one.

import { navigate, sessionPath } from "../../lib/address.js";
import { ApiError, act } from "../../lib/api.js";
import { confirmed, copyButton } from "../../lib/bar.js";
import { h, list, say, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";
import { schemaForm } from "../../lib/schema_form.js";
import { askInDialog, facts, submitting } from "./submitting.js";
import { counted } from "../../lib/words.js";

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
    Name: { ...LINE, description: "No other tool may have it.", examples: ["my-sandbox"] },
    ToolType: { enum: ["CodeEnv"], title: "Type", description: "The only one that the double has." },
    ...CHANGED,
    ProjectName: { ...LINE, title: "Project", examples: ["default"] },
    Tags: { type: "array", items: { ...PAIR, required: ["Key"] } },
  },
};
const SESSIONS = 50; // shown of a tool

/** A form for a new tool; other fields of CreateTool can be written as JSON. */
export function newTool() {
  const form = schemaForm(CREATED, { label: "Fields" });
  return submitting("Create", async () => {
    const fields = form.read();
    const { ToolId } = await act("CreateTool", fields);
    say(`The tool ${fields.Name} is created.`);
    navigate(`/tools/tool/${ToolId}`);
  }, [h("h2", null, "New sandbox tool"),
    h("p", { class: "hint" }, "An agent runs its code in sessions of a tool."), form.element]);
}

/** @param {string} id */
export function tool(id) {
  const element = h("div", null, h("p", { class: "none" }, "Reading…"));
  const living = h("h3");
  const links = h("ul", { class: "served" });
  let drawn = "";

  async function update() {
    try {
      const found = await act("GetTool", { ToolId: id });
      const text = JSON.stringify(found);
      if (text !== drawn) element.replaceChildren(...shown(found));
      drawn = text;
    } catch (error) {
      drawn = "";
      const gone = error instanceof ApiError && error.status === 404;
      element.replaceChildren(h("p", { class: "none" }, gone ? `There is no tool ${id}.` : /** @type {Error} */ (error).message));
    }
  }

  /** @param {any} found */
  function shown(found) {
    return [
      h("h2", null, found.Name),
      facts({ Type: found.ToolType, Status: found.Status, Project: found.ProjectName, Created: found.CreatedAt, Changed: found.UpdatedAt }),
      found.Description && h("p", null, found.Description),
      h("p", { class: "buttons" }, h("button", { onclick: () => change(found) }, "Change"),
        h("button", { class: "danger", onclick: () => confirmed(`Delete the tool ${found.Name}?`, "Its sessions end.", "Delete",
          async () => {
            await act("DeleteTool", { ToolId: id });
            navigate("/tools");
          }) }, "Delete")),
      h("h3", null, "TOOL_ID"), copied("Id", id), copied("Export line", exportLine(id)),
      found.Envs.length > 0 && [h("h3", null, "Environment"), h("dl", { class: "headers" }, found.Envs.map((/** @type {any} */ one) =>
        h("div", null, h("dt", null, one.Key), h("dd", null, one.Value))))],
      found.Tags.length > 0 && h("ul", { class: "tags" }, found.Tags.map((/** @type {any} */ one) =>
        h("li", { class: "tag" }, one.Value ? `${one.Key}: ${one.Value}` : one.Key))),
      living, links,
    ].flat().filter(Boolean);
  }

  /** @param {any} found */
  function change(found) {
    const before = { Description: found.Description, Envs: found.Envs };
    const form = schemaForm({ type: "object", properties: CHANGED }, { values: before, label: "Fields" });
    askInDialog(`Change ${found.Name}`, [form.element], "Change", async () => {
      await act("UpdateTool", { ToolId: id, ...changes(before, form.read()) });
      say("The tool is changed.");
    });
  }

  function draw() {
    const ours = double.sessions.filter((one) => one.ToolId === id);
    setText(living, counted(ours.length, "living session"));
    list(links, ours.slice(0, SESSIONS), (one) => one.SessionId, (one) =>
      h("li", null, h("a", { href: sessionPath(one) }, one.UserSessionId)));
  }

  draw();
  update();
  return { element, update, draw };
}

/** The fields that differ. @param {any} before @param {any} after */
function changes(before, after) {
  const found = { Description: after.Description ?? "", Envs: after.Envs ?? [] };
  return Object.fromEntries(Object.entries(found).filter(([name, value]) =>
    JSON.stringify(value) !== JSON.stringify(before[name])));
}

/** @param {string} id */
function exportLine(id) {
  const { variables, tool_id: own } = double.connection;
  const name = Object.keys(variables).find((one) => variables[one] === own) ?? "TOOL_ID";
  return `export ${name}=${id}`;
}

/** @param {string} name @param {string} text */
const copied = (name, text) => h("div", { class: "copied" },
  h("pre", { role: "group", tabindex: "0", "aria-label": name }, text), copyButton("Copy", () => text));
