// A new MCP service: from the address of a server, from a definition, or from a command.

import { navigate } from "../../lib/address.js";
import { act } from "../../lib/api.js";
import { h, say } from "../../lib/dom.js";
import { schemaForm } from "../../lib/schema_form.js";
import { definitionField } from "./definition.js";
import { COMMAND, commandOf, keyFor, located, TOKEN } from "./backend.js";
import { submitting } from "./submitting.js";

const TEXT = { type: "string" };
const NAME = { type: "object", required: ["Name"], properties: { Name: { ...TEXT, maxLength: 128, description: "It answers at /mcp/NAME.", examples: ["my-service"] } } };

/** Where a service can come from: fields, and the body of the request that they make.
 * @type {{title: string, schema: any, body: (fields: any) => any}[]} */
const SOURCES = [
  { title: "An address",
    schema: { type: "object", required: ["Url"], properties: {
      Url: { ...TEXT, format: "uri", title: "Address of the MCP server", examples: ["http://localhost:9000/mcp"] }, Token: TOKEN } },
    body: ({ Url, Token }) => ({ ProtocolType: "MCP", BackendType: "Custom", ...located(Url, "Url"), ...keyFor(Token, "MCP") }) },
  { title: "A definition",
    schema: { type: "object", properties: {
      Url: { ...TEXT, format: "uri", title: "Address of the API", description: "If it differs from the definition's.", examples: ["http://localhost:9000"] },
      Key: { ...TOKEN, title: "Key of the API", description: "It is sent where the definition says." } } },
    body: ({ Url, Key }) => ({ ProtocolType: "HTTP", BackendType: "Custom", Path: "/", ...(Url && located(Url, "Url")), ...keyFor(Key, "HTTP") }) },
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
      parts.forEach((part, place) => { part.hidden = place !== index; });
    } }), title));
  return submitting("Create", async () => {
    const { Name } = name.read();
    const api = chosen === 1 && { ProtocolConfiguration: { HttpApiConfiguration: { Type: "Swagger", Configuration: definition.read() } } };
    const body = { Name, ...api, ...SOURCES[chosen].body(forms[chosen].read()) };
    try {
      const { MCPServiceId } = await act("CreateMCPService", body);
      say(`The service ${Name} is created.`);
      navigate(`/tools/service/${MCPServiceId}`);
    } catch (error) {
      if (chosen !== 1) throw error;
      const { message } = /** @type {Error} */ (error);
      definition.showPlace(message);
      throw new Error(message); // about the definition, whichever field it names
    }
  }, [h("h2", null, "New MCP service"), name.element,
    h("fieldset", { class: "choice" }, h("legend", null, "Made from"), h("div", { class: "checks" }, radios)), ...parts]);
}
