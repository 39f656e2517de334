// The form for a new MCP service, from an address, an OpenAPI definition or a command.

import { navigate } from "../../lib/address.js";
import { act } from "../../lib/api.js";
import { announce, h, setText } from "../../lib/dom.js";
import { dropZone } from "../../lib/files.js";
import { FormError, schemaForm } from "../../lib/schema_form.js";
import { COMMAND, LOGIN, TOKEN, commandOf, keyFor, located } from "./backend.js";
import { submitForm } from "./submit_form.js";

const TEXT = { type: "string" };
const LARGEST = 24 * 1024 * 1024; // bytes of a definition; requests are limited
const SHOWN = 200000; // characters in the text area
const NAME = { type: "object", required: ["Name"], properties: { Name: { ...TEXT, maxLength: 128, description: "It answers at /mcp/NAME.", examples: ["my-service"] } } };

/** The sources of a service: a form's schema, and a function that makes a request's body of its fields.
 * @type {{title: string, schema: any, body: (fields: any) => any}[]} */
const SOURCES = [
  { title: "An address",
    schema: { type: "object", required: ["Url"], properties: {
      Url: { ...TEXT, format: "uri", title: "Address of the MCP server", examples: ["http://localhost:9000/mcp"] }, Token: TOKEN, Login: LOGIN } },
    body: ({ Url, Token, Login }) => ({ ProtocolType: "MCP", BackendType: "Custom", ...located(Url, "Address of the MCP server"), ...keyFor({ key: Token, login: Login }, "MCP") }) },
  { title: "A definition",
    schema: { type: "object", properties: {
      Url: { ...TEXT, format: "uri", title: "Address of the API", description: "If it differs from the definition's.", examples: ["http://localhost:9000"] },
      Key: { ...TOKEN, title: "Key of the API", description: "Sent where the definition says." }, Login: LOGIN } },
    body: ({ Url, Key, Login }) => ({ ProtocolType: "HTTP", BackendType: "Custom", Path: "/", ...(Url && located(Url, "Address of the API", "/v1")), ...keyFor({ key: Key, login: Login }, "HTTP") }) },
  { title: "A command", schema: COMMAND,
    body: (fields) => ({ ProtocolType: "MCP", BackendType: "CustomMcp", Path: "/", ...commandOf(fields) }) },
];

export function newService() {
  const name = schemaForm(NAME, { label: "Service", asJson: false });
  const definition = definitionField((stem) => {
    if (!name.element.querySelector("input")?.value) name.set({ Name: stem });
  });
  const forms = SOURCES.map(({ schema, title }) => schemaForm(schema, { label: title, asJson: false }));
  const parts = forms.map((form, index) => h("div", { hidden: index > 0 }, index === 1 && definition.element, form.element));
  let chosen = 0;
  const radios = SOURCES.map(({ title }, index) => h("label", null, h("input", { type: "radio", name: "source",
    checked: index === 0, onchange: () => {
      chosen = index;
      parts.forEach((part, other) => { part.hidden = other !== index; });
    } }), title));
  return submitForm("Create", async () => {
    const { Name } = name.read();
    const api = chosen === 1 && { ProtocolConfiguration: { HttpApiConfiguration: { Type: "Swagger", Configuration: definition.read() } } };
    const body = { Name, ...api, ...SOURCES[chosen].body(forms[chosen].read()) };
    try {
      const { MCPServiceId } = await act("CreateMCPService", body);
      announce(`The service ${Name} was created.`);
      navigate(`/tools/service/${MCPServiceId}`);
    } catch (error) {
      if (chosen !== 1) throw error;
      const { message } = /** @type {Error} */ (error);
      definition.showPlace(message);
      throw new Error(message); // not an ApiError, whose message would be shown at the field that it names
    }
  }, [h("h2", null, "New MCP service"), name.element,
    h("fieldset", { class: "choice" }, h("legend", null, "Made from"), h("div", { class: "checks" }, radios)), ...parts]);
}

/** A field for a Swagger or OpenAPI definition, which is dropped, chosen or pasted.
 * @param {(stem: string) => void} onName is called with the name of a file */
function definitionField(onName) {
  let large = ""; // a file's text that is too long for the text area
  const text = h("textarea", { id: "definition", rows: 8, spellcheck: "false", oninput: () => { large = ""; },
    placeholder: "OpenAPI 3 or Swagger 2, as JSON or YAML" });
  const note = h("p", { class: "hint", role: "status" });
  const file = h("input", { type: "file", id: "definition-file", accept: ".json,.yaml,.yml", onchange: () => take(file.files[0]) });
  const element = h("div", { class: "drop" },
    h("div", { class: "field" }, h("label", { for: "definition-file" }, "Definition file: choose it or drop it here"), file),
    h("div", { class: "field" }, h("label", { for: "definition" }, "Definition"), text), note);
  dropZone(element, ([first]) => take(first), (dropped) => { text.value = dropped; });

  /** @param {File | undefined} chosen */
  async function take(chosen) {
    if (!chosen) return;
    if (chosen.size > LARGEST) return setText(note, `${chosen.name} is larger than ${LARGEST / 2 ** 20} MiB.`);
    const content = await chosen.text();
    large = content.length > SHOWN ? content : "";
    text.value = large ? "" : content;
    setText(note, `${chosen.name}: ${content.length} characters${large ? ", too many to show" : ""}.`);
    announce(`Read ${chosen.name}.`);
    onName(chosen.name.replace(/\.\w+$/, "").replace(/[^\w.-]+/g, "-").replace(/^[^a-zA-Z0-9]+/, "").slice(0, 128));
  }

  return {
    element,
    read() {
      if (large || text.value.trim()) return large || text.value;
      text.focus();
      throw new FormError("A definition is required: drop a file, choose one, or paste its text.");
    },
    /** Select the line that an error message names. @param {string} message */
    showPlace(message) {
      const line = Number(/\bin line (\d+)/.exec(message)?.[1]);
      if (!line || large) return;
      const lines = text.value.split("\n");
      const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
      text.focus();
      text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    },
  };
}
