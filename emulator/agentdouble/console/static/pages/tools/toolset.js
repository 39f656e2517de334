// Which services a toolset has: a new one, and another choice for one that is there.

import { navigate } from "../../lib/address.js";
import { ask, post } from "../../lib/api.js";
import { h, say } from "../../lib/dom.js";
import { FormError, schemaForm } from "../../lib/schema_form.js";
import { askInDialog, submitting } from "./submitting.js";

const NAME = { type: "object", required: ["Name"], properties: { Name: { type: "string", maxLength: 128, description: "It answers at /mcp/NAME." } } };

/** A form for a new toolset. */
export function newToolset() {
  const form = schemaForm(NAME, { label: "Toolset", asJson: false });
  const choice = servicesChoice([]);
  return submitting("Create", async () => {
    const made = await post("/mcp-toolsets", { ...form.read(), MCPServices: choice.read() });
    say(`The toolset ${made.Name} is created.`);
    navigate(`/tools/toolset/${made.Name}`);
  }, [h("h2", null, "New toolset"),
    h("p", { class: "hint" }, "A toolset shows the tools of several services at one address."), form.element, choice.element]);
}

/** @param {any} found a toolset */
export function changeToolset(found) {
  const choice = servicesChoice(found.MCPServices.map((/** @type {any} */ one) => one.MCPServiceId));
  askInDialog(`Change ${found.Name}`, [choice.element], "Change", async () => {
    await ask(`/mcp-toolsets/${found.Name}`, { method: "PATCH", body: { MCPServiceIds: choice.read().join(",") } });
    say("The toolset is changed.");
  });
}

/** All services to choose from. @param {string[]} chosen ids */
function servicesChoice(chosen) {
  const boxes = h("div", { class: "checks" });
  ask("/mcp-services").then(({ MCPServices: services }) => boxes.replaceChildren(...services.map((/** @type {any} */ one) =>
    h("label", null, h("input", { type: "checkbox", value: one.MCPServiceId, checked: chosen.includes(one.MCPServiceId) }), one.Name)),
  services.length ? "" : "There is no service yet: make one first."), () => undefined);
  return {
    element: h("fieldset", null, h("legend", null, "Services"), boxes),
    read() {
      const ids = [...boxes.querySelectorAll("input:checked")].map((one) => one.value);
      if (!ids.length) throw new FormError("Choose a service at least.");
      return ids;
    },
  };
}
