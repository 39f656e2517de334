// Form fields with a single control: text, numbers, choices and JSON.

import { h, setText } from "./dom.js";
import { CHOICES, same } from "./schema.js";

const LONGEST_HINT = 1000;
const LINE = 200; // characters; a text that may be longer gets several lines
const EXAMPLES = 20; // suggestions of a field

/** @typedef {import("./schema.js").Shape} Shape */
/** "read" returns undefined if the value is left out; "empty" says whether the field is untouched.
 * @typedef {{element: HTMLElement, read: () => any, set: (value: any) => void, empty: () => boolean}} Field */
/** @typedef {{root: any, fields: number, wrong: {control: HTMLElement, message: string}[],
 *   leaves: {path: string, control: HTMLElement, tell: (message: string) => void}[]}} Form */
/** @typedef {{form: Form, name: string, path: string, required: boolean, depth: number}} Slot */

let count = 0;

/** Return an id that is unique on the page. */
export const newId = () => `field-${count += 1}`;

/** A field with one control. "parse" returns the value of its text, or throws an error to show.
 * @param {Slot} slot @param {any} control @param {{schema: any, nullable: boolean}} shape
 * @param {(text: string) => any} parse @param {(value: any) => string} show @returns {Field} */
function leaf(slot, control, { schema, nullable }, parse, show) {
  const { name, path, required, form } = slot;
  const id = newId();
  const hint = hintOf(schema, `${id}-hint`);
  const problem = h("p", { id: `${id}-problem`, class: "bad", hidden: true });
  control.id = id;
  if (required && !nullable) control.setAttribute("aria-required", "true");
  /** @param {string} message */
  const tell = (message) => {
    setText(problem, message);
    problem.hidden = !message;
    control.setAttribute("aria-invalid", String(Boolean(message)));
    control.setAttribute("aria-describedby", [hint && `${id}-hint`, message && `${id}-problem`].filter(Boolean).join(" "));
  };
  /** @param {string} message */
  const reject = (message) => {
    tell(`${name} ${message}`);
    form.wrong.push({ control, message: `${path.includes(".") ? path : name} ${message}` });
  };
  tell("");
  form.leaves.push({ path, control, tell });
  const examples = Array.isArray(schema.examples) ? schema.examples.slice(0, EXAMPLES).map(toText) : [];
  if (examples.length && !control.placeholder?.trim()) control.placeholder = examples[0].slice(0, LINE);
  const suggested = examples.length > 1 && control.matches("input") && h("datalist", { id: `${id}-examples` },
    examples.map((/** @type {string} */ example) => h("option", { value: example })));
  if (suggested) control.setAttribute("list", suggested.id);
  control.addEventListener("input", () => {
    isBlank = false;
    tell("");
  });
  if (schema.default !== undefined && schema.default !== null) control.value = show(schema.default);
  const initial = control.value;
  let isBlank = false; // an empty text was set; it is not a value left out
  return {
    element: h("div", { class: "field" }, h("label", { for: id, title: path }, name, mark(required && !nullable)), control, hint, problem, suggested),
    empty: () => control.value === initial && !isBlank,
    set(value) {
      control.value = value === undefined ? initial : value === null ? "" : show(value);
      isBlank = value === "" && control.value === "" && control.matches("textarea, input") && !control.inputMode;
      tell("");
    },
    read() {
      tell("");
      const text = control.value;
      if (!isBlank && !text.trim() && (text === "" || control.inputMode)) {
        if (required && nullable) return null;
        return required ? reject("needs a value.") : undefined;
      }
      try {
        return parse(text);
      } catch (error) {
        return reject(/** @type {Error} */ (error).message);
      }
    },
  };
}

/** @param {boolean} required */
export const mark = (required) => required && h("span", { class: "mark", "aria-hidden": "true" }, " *");

/** @param {any} schema @param {string} id */
export function hintOf(schema, id) {
  const { description, minimum, maximum } = schema;
  const [least, most] = [minimum, maximum].map((limit) => typeof limit === "number");
  const limits = least && most ? `${minimum} to ${maximum}.` : least && minimum > 1 ? `At least ${minimum}.` : most && `At most ${maximum}.`;
  const parts = [typeof description === "string" && description.trim().slice(0, LONGEST_HINT), limits];
  const text = parts.filter(Boolean).join(" ");
  return text && h("small", { id, class: "hint" }, text);
}

/** @param {Slot} slot @param {Shape} shape @returns {Field} */
export function textField(slot, shape) {
  const attributes = { spellcheck: "false", autocapitalize: "off", autocomplete: "off" };
  const { format, maxLength } = shape.schema;
  if (shape.kind === "text") {
    const isLine = Boolean(format) || (typeof maxLength === "number" && maxLength <= LINE);
    const type = format === "password" ? "password" : "text";
    // the pattern is left to the server: a malicious one could block the page
    return leaf(slot, isLine ? h("input", { type, ...attributes }) : h("textarea", { rows: 1, ...attributes }), shape, (text) => text, toText);
  }
  const isNumber = shape.kind !== "long choice";
  const control = h("input", { type: "text", ...attributes, ...(isNumber && { inputmode: "decimal" }) });
  return leaf(slot, control, shape, (text) => (isNumber ? number(text, shape) : oneOf(text, shape.choices)), toText);
}

/** @param {any} value */
const choiceLabel = (value) => (value === true ? "yes" : value === false ? "no" : toText(value));

/** @param {any} value */
const toText = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** @param {string} text @param {Shape} shape */
function number(text, { kind, schema: { minimum, maximum } }) {
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error("is not a number.");
  if (kind === "integer" && !Number.isInteger(value)) throw new Error("is not a whole number.");
  if (kind === "integer" && !Number.isSafeInteger(value)) throw new Error("is too large for a page.");
  if (typeof minimum === "number" && value < minimum) throw new Error(`is less than ${minimum}.`);
  if (typeof maximum === "number" && value > maximum) throw new Error(`is more than ${maximum}.`);
  return value;
}

/** @param {string} text @param {any[]} choices */
function oneOf(text, choices) {
  const match = choices.find((choice) => toText(choice) === text);
  if (match === undefined) throw new Error(`is not one of the ${choices.length} values.`);
  return match;
}

/** @param {Slot} slot @param {Shape} shape @returns {Field} */
export function choiceField(slot, shape) {
  const { choices } = shape;
  const options = choices.map((choice, index) => h("option", { value: index }, choiceLabel(choice).slice(0, CHOICES) || '""'));
  const only = slot.required && !shape.nullable && choices.length === 1;
  const select = h("select", null, !only && h("option", { value: "" }, ""), options);
  const index = (/** @type {any} */ value) => choices.findIndex((choice) => same(choice, value));
  return leaf(slot, select, shape, (text) => choices[Number(text)], (value) => (index(value) < 0 ? "" : String(index(value))));
}

/** @param {Slot} slot @param {any} schema @param {boolean} [nullable] @returns {Field} */
export function jsonField(slot, schema, nullable = false) {
  const area = h("textarea", { rows: 3, spellcheck: "false", placeholder: schema.examples?.length ? null : "JSON" });
  return leaf(slot, area, { schema, nullable }, parseJson, (value) => JSON.stringify(value, null, 2));
}

/** @param {string} text */
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`is not JSON: ${/** @type {Error} */ (error).message}`);
  }
}
