// A form for a JSON Schema, such as a tool's arguments. Values that are too deep or unusual for fields
// are entered as JSON; a button switches the whole form to JSON.

import { h } from "./dom.js";
import { fits, isObject, labelOf, own, shapeOf, titleOf } from "./schema.js";
import { choiceField, hintOf, jsonField, mark, newId, textField } from "./schema_fields.js";

const DEEPEST = 3; // levels of nested objects and lists
const FIELDS = 150; // of a form; after them, objects and lists are entered as JSON
const ITEMS = 200; // of a list

/** @typedef {import("./schema.js").Shape} Shape */
/** @typedef {import("./schema_fields.js").Field} Field */
/** @typedef {import("./schema_fields.js").Form} Form */
/** @typedef {import("./schema_fields.js").Slot} Slot */

/** A value is invalid; its field shows the message as well. */
export class FormError extends Error {}

/**
 * Create a form for a schema. "read" returns the value, or marks invalid fields and throws FormError.
 * @param {any} schema
 * @param {{values?: any, label?: string, asJson?: boolean}} [options]
 * @returns {{element: HTMLElement & {refuse: (message: string) => boolean}, read: () => any, set: (value: any) => void}}
 */
export function schemaForm(schema, { values, label = "Arguments", asJson = true } = {}) {
  /** @type {Form} */
  const form = { root: schema, fields: 0, wrong: [], leaves: [] };
  const isText = shapeOf(schema, schema).kind === "json";
  const slot = { form, name: label, path: "", required: !isText, depth: 0 };
  const field = takesNothing(schema) ? nothing(label) : fieldOf(schema, slot);
  const text = jsonField({ ...slot, name: `${label} as JSON` }, {});
  const toggle = h("button", { type: "button", "aria-pressed": "false", onclick: toggleJson }, "As JSON");
  text.element.hidden = true;
  const element = h("div", { class: "form", role: "group", "aria-label": label }, field.element, text.element,
    asJson && !isText && h("p", { class: "buttons" }, toggle));
  if (values !== undefined) field.set(values);

  function toggleJson() {
    const asText = text.element.hidden;
    form.wrong = [];
    if (asText) text.set(field.read() ?? {});
    else {
      const value = text.read();
      if (form.wrong.length) return;
      field.set(value);
    }
    text.element.hidden = !asText;
    field.element.hidden = asText;
    toggle.setAttribute("aria-pressed", String(asText));
  }

  /** Show the double's error at the field that it names; return false if it names no field.
   * @param {string} message */
  element.refuse = (message) => {
    const words = [...message.matchAll(/\b(?:the|a|parameter|missing) ([\w-]+)/gi)].map((match) => match[1].toLowerCase());
    const leaf = form.leaves.find(({ path, control }) => path && control.checkVisibility() && words.includes(path.toLowerCase()));
    leaf?.tell(message);
    leaf?.control.focus();
    return Boolean(leaf);
  };

  return {
    element,
    read() {
      form.wrong = [];
      const value = (text.element.hidden ? field : text).read();
      if (!form.wrong.length) return value ?? {};
      form.wrong[0].control.focus();
      throw new FormError(form.wrong[0].message);
    },
    set: (value) => (text.element.hidden ? field : text).set(value),
  };
}

/** @param {any} schema */
const takesNothing = (schema) => isObject(schema) && schema.type === "object" && !schema.additionalProperties
  && !Object.keys(schema).some((keyword) => /^(\$ref|allOf|anyOf|oneOf|patternProperties)$/.test(keyword))
  && !Object.keys(schema.properties ?? {}).length;

/** @param {string} label @returns {Field} */
function nothing(label) {
  let current = {};
  return { element: h("p", { class: "none" }, `${label}: none.`), read: () => current, empty: () => true,
    set: (value) => { current = value ?? {}; } };
}

/** @param {any} schema @param {Slot} slot @returns {Field} */
function fieldOf(schema, slot) {
  const shape = shapeOf(schema, slot.form.root);
  slot.form.fields += 1;
  const nests = shape.kind === "object" || shape.kind === "list" || shape.kind === "one of";
  const tooDeep = nests && (slot.depth >= DEEPEST || slot.form.fields > FIELDS);
  const isLarge = shape.kind === "object" && Object.keys(shape.schema.properties).length > FIELDS;
  if (tooDeep || isLarge || shape.kind === "json") return jsonField(slot, shape.schema, shape.nullable);
  if (shape.kind === "object") return withDefault(objectField(slot, shape), shape);
  if (shape.kind === "list") return withDefault(listField(slot, shape), shape);
  if (shape.kind === "one of") return withDefault(oneOfField(slot, shape), shape);
  return shape.kind === "choice" ? choiceField(slot, shape) : textField(slot, shape);
}

/** @param {Field} field @param {Shape} shape @returns {Field} */
function withDefault(field, { schema }) {
  const value = schema.default;
  if (value === undefined || value === null) return field;
  field.set(value);
  return { ...field, set: (next) => field.set(next === undefined ? value : next) };
}

/** @param {Slot} slot @param {any} schema @param {...any} content */
function group({ name, required, depth }, schema, ...content) {
  const hint = hintOf(schema, newId());
  if (depth === 0) return h("div", { class: "fields" }, hint, ...content);
  const described = hint ? { "aria-describedby": hint.id } : null;
  return h("fieldset", described, h("legend", null, name, mark(required)), hint, ...content);
}

/** @param {Slot} slot @param {string} name */
const below = (slot, name) => ({ ...slot, name, path: slot.path ? `${slot.path}.${name}` : name, depth: slot.depth + 1 });

/** @param {Slot} slot @param {Shape} shape @returns {Field} */
function objectField(slot, shape) {
  const { properties, required } = shape.schema;
  const needed = Array.isArray(required) ? required : [];
  const fields = Object.entries(properties).map(([name, schema]) =>
    /** @type {[string, Field]} */ ([name, fieldOf(schema, { ...below(slot, name), name: labelOf(name, schema), required: needed.includes(name) })]));
  let more = /** @type {[string, any][]} */ ([]); // properties that were set and have no field
  let isSet = false;
  const empty = () => !isSet && fields.every(([, field]) => field.empty());
  return {
    element: group(slot, shape.schema, fields.map(([, field]) => field.element)),
    empty,
    set(value) {
      isSet = isObject(value);
      for (const [name, field] of fields) field.set(own(value, name));
      more = Object.entries(isObject(value) ? value : {}).filter(([name]) => !Object.hasOwn(properties, name));
    },
    read() {
      if (!slot.required && empty()) return undefined;
      const entries = fields.map(([name, field]) => /** @type {[string, any]} */ ([name, field.read()]));
      return Object.fromEntries([...more, ...entries.filter(([, value]) => value !== undefined)]);
    },
  };
}

/** @param {Slot} slot @param {Shape} shape @returns {Field} */
function listField(slot, shape) {
  /** @type {{field: Field, row: HTMLElement}[]} */
  let items = [];
  let isSet = false;
  let more = /** @type {any[]} */ ([]); // items that were set beyond ITEMS
  const rows = h("div", { class: "items" });
  const add = h("button", { type: "button", "aria-label": `Add to ${slot.name}`, onclick: () => {
    append(undefined);
    /** @type {HTMLElement | null} */ (rows.lastElementChild?.querySelector("input, textarea, select"))?.focus();
  } }, "Add");

  /** @param {any} value */
  function append(value) {
    if (items.length >= ITEMS) return;
    const name = `${slot.name} ${items.length + 1}`;
    const path = `${slot.path || slot.name}.${items.length + 1}`;
    const field = fieldOf(shape.schema.items, { ...below(slot, name), path, required: true });
    if (value !== undefined) field.set(value);
    const item = { field, row: h("div", { class: "item" }, field.element, h("button", { type: "button",
      "aria-label": `Remove ${name}`, onclick: () => {
        items = items.filter((other) => other !== item);
        item.row.remove();
        add.focus();
      } }, "Remove")) };
    items.push(item);
    rows.append(item.row);
  }

  return {
    element: group(slot, shape.schema, rows, h("p", { class: "buttons" }, add)),
    empty: () => !items.length && !isSet,
    set(value) {
      isSet = Array.isArray(value);
      const all = Array.isArray(value) ? value : [];
      items = [];
      rows.replaceChildren();
      all.slice(0, ITEMS).forEach(append);
      more = all.slice(ITEMS);
    },
    read: () => (items.length || isSet || slot.required ? [...items.map(({ field }) => field.read()), ...more] : undefined),
  };
}

/** @param {Slot} slot @param {Shape} shape @returns {Field} */
function oneOfField(slot, shape) {
  const { alternatives, nullable } = shape;
  const holder = h("div");
  let field = /** @type {Field | null} */ (null);
  const id = newId();
  const kind = h("select", { id, onchange: () => choose(kind.value) },
    h("option", { value: "" }, ""), alternatives.map((alternative, index) => h("option", { value: index }, titleOf(alternative, index))));

  /** @param {string} index */
  function choose(index) {
    kind.value = index;
    field = index === "" ? null : fieldOf(alternatives[Number(index)], { ...slot, path: slot.path || slot.name, required: true, depth: slot.depth || 1 });
    holder.replaceChildren(...(field ? [field.element] : []));
  }

  return {
    element: group({ ...slot, depth: slot.depth || 1 }, shape.schema,
      h("div", { class: "field" }, h("label", { for: id }, `Kind of ${slot.name}`), kind), holder),
    empty: () => field === null,
    set(value) {
      const index = value === undefined || value === null ? -1
        : alternatives.findIndex((alternative) => fits(value, shapeOf(alternative, slot.form.root)));
      choose(index < 0 ? "" : String(index));
      field?.set(value);
    },
    read() {
      if (field) return field.read();
      if (slot.required && nullable) return null;
      if (slot.required) slot.form.wrong.push({ control: kind, message: `${slot.path || slot.name} needs a kind.` });
      return undefined;
    },
  };
}
