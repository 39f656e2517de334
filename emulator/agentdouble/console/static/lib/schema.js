// What a form needs to know about a value from its JSON Schema. The schema comes from a server that may
// be wrong or hostile: every schema gets a kind, "json" if nothing else applies.

import { decoded } from "./address.js";

const STEPS = 100; // references and parts of allOf that are followed for one value
export const CHOICES = 200; // most options of a select
const UNITS = /** @type {Record<string, string>} */ ({ s: "seconds", ms: "milliseconds", bytes: "bytes" });

/** @typedef {Record<string, any>} Schema */
/** @typedef {"text" | "number" | "integer" | "choice" | "long choice" | "list" | "object" | "one of" | "json"} Kind */
/** @typedef {{kind: Kind, schema: Schema, nullable: boolean, choices: any[], alternatives: Schema[]}} Shape */

/** @param {any} value @returns {value is Schema} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Return an object's own property. @param {any} of @param {string} name */
export const own = (of, name) => (isObject(of) && Object.hasOwn(of, name) ? of[name] : undefined);

/** Return the shape of the values that a schema accepts. @param {any} schema @param {any} root
 * @param {{left: number}} [steps] @returns {Shape} */
export function shapeOf(schema, root, steps = { left: STEPS }) {
  const target = resolved(schema, root, steps);
  if (!target) return { kind: "json", schema: isObject(schema) ? schema : {}, nullable: false, choices: [], alternatives: [] };
  const types = [target.type].flat().filter((name) => typeof name === "string");
  const nullable = types.includes("null") || target.nullable === true;
  const shape = { schema: target, nullable, choices: /** @type {any[]} */ ([]), alternatives: /** @type {Schema[]} */ ([]) };
  const choices = choicesOf(target);
  if (choices) return chosen(shape, choices);
  const type = types.filter((name) => name !== "null");
  const others = target.anyOf ?? target.oneOf;
  if (Array.isArray(others) && !isObject(target.properties)) return alternatives(shape, others, root, steps);
  if (type.length > 1) return { ...shape, kind: "one of", alternatives: type.map((name) => ({ ...target, type: name, default: undefined })) };
  return { ...shape, kind: kindOf(type[0], target), choices: type[0] === "boolean" ? [true, false] : [] };
}

/** @param {Omit<Shape, "kind">} shape @param {any[]} choices @returns {Shape} */
function chosen(shape, choices) {
  const offered = choices.filter((choice) => choice !== null);
  const nullable = shape.nullable || offered.length < choices.length;
  return { ...shape, nullable, kind: offered.length > CHOICES ? "long choice" : "choice", choices: offered };
}

/** @param {Omit<Shape, "kind">} shape @param {any[]} others @param {any} root
 * @param {{left: number}} steps @returns {Shape} */
function alternatives(shape, others, root, steps) {
  const all = others.slice(0, CHOICES).map((other) => resolved(other, root, { left: STEPS }));
  const left = /** @type {Schema[]} */ (all.map((part, index) => part ?? { title: `${index + 1}` }).filter((part) => part.type !== "null"));
  const { anyOf, oneOf, ...rest } = shape.schema;
  const nullable = shape.nullable || left.length < all.length;
  if (left.length === 1) {
    const inner = shapeOf({ ...left[0], ...rest }, root, steps);
    return { ...inner, nullable: nullable || inner.nullable };
  }
  const constants = left.map(choicesOf);
  if (left.length && constants.every((constant) => constant !== null)) return chosen({ ...shape, nullable }, constants.flat());
  return { ...shape, nullable, kind: left.length ? "one of" : "json", alternatives: left };
}

/** @param {Schema} schema @returns {any[] | null} */
function choicesOf(schema) {
  if ("const" in schema) return [schema.const];
  return Array.isArray(schema.enum) && schema.enum.length ? schema.enum : null;
}

/** @param {string | undefined} type @param {Schema} schema @returns {Kind} */
function kindOf(type, schema) {
  if (type === "string") return "text";
  if (type === "boolean") return "choice";
  if (type === "number" || type === "integer") return type;
  if (type === "array" || (!type && isObject(schema.items))) return isObject(schema.items) ? "list" : "json";
  const mayBeObject = type === "object" || !type;
  return mayBeObject && isObject(schema.properties) && Object.keys(schema.properties).length ? "object" : "json";
}

/** Follow references and merge allOf; null if that takes too many steps.
 * @param {any} schema @param {any} root @param {{left: number}} steps @returns {Schema | null} */
function resolved(schema, root, steps) {
  let current = schema;
  while (isObject(current)) {
    steps.left -= 1;
    if (steps.left < 0) return null;
    if (typeof current.$ref === "string") {
      const { $ref, ...rest } = current;
      const target = pointed($ref, root);
      if (!isObject(target)) return null;
      current = { ...target, ...rest };
    } else if (Array.isArray(current.allOf)) {
      const { allOf, ...rest } = current;
      const parts = allOf.slice(0, STEPS).map((part) => resolved(part, root, steps));
      if (parts.some((part) => part === null)) return null;
      current = joined([.../** @type {Schema[]} */ (parts), rest]);
    } else return current;
  }
  return null;
}

/** @param {Schema[]} parts @returns {Schema} */
function joined(parts) {
  const properties = parts.flatMap((part) => Object.entries(isObject(part.properties) ? part.properties : {}));
  const required = parts.flatMap((part) => (Array.isArray(part.required) ? part.required : []));
  const all = Object.assign({}, ...parts);
  return { ...all, required, ...(properties.length && { properties: Object.fromEntries(properties) }) };
}

/** Return the target of a reference such as "#/$defs/Place". @param {string} reference @param {any} root */
function pointed(reference, root) {
  if (!reference.startsWith("#")) return undefined;
  const names = reference.slice(1).split("/").slice(1);
  return names.reduce((at, name) => own(at, decoded(name).replaceAll("~1", "/").replaceAll("~0", "~")), root);
}

/** Return whether a value may be of an alternative's shape. @param {any} value @param {Shape} shape */
export function fits(value, { kind, choices, nullable }) {
  if (value === null) return nullable;
  if (kind === "choice" || kind === "long choice") return choices.some((choice) => same(choice, value));
  if (kind === "list") return Array.isArray(value);
  if (kind === "object") return isObject(value);
  if (kind === "text") return typeof value === "string";
  return kind === "number" || kind === "integer" ? typeof value === "number" : true;
}

/** @param {any} value @param {any} other */
export const same = (value, other) => JSON.stringify(value) === JSON.stringify(other);

/** Return a label for a property: its title, or its name in words. @param {string} name @param {any} schema */
export function labelOf(name, schema) {
  const title = own(schema, "title");
  const letters = (/** @type {string} */ text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  if (typeof title === "string" && title && letters(title) !== letters(name)) return title.slice(0, 100);
  const [, stem = name, unit = ""] = /^(.+)_(s|ms|bytes)$/.exec(name) ?? [];
  const words = stem.replace(/([a-z\d])([A-Z])(?=[a-z])/g, "$1 $2").split(/[\s_-]+/).filter(Boolean)
    .map((word) => word.replace(/^[A-Z](?=[a-z]+$)/, (first) => first.toLowerCase())).join(" ");
  return (words.charAt(0).toUpperCase() + words.slice(1) || name) + (unit && `, in ${UNITS[unit]}`);
}

/** Return a short name for an alternative. @param {Schema} schema @param {number} index */
export function titleOf(schema, index) {
  if (typeof schema.title === "string" && schema.title) return schema.title.slice(0, 100);
  const type = String(schema.type ?? `kind ${index + 1}`).slice(0, 100);
  return own({ string: "text", array: "list" }, type) ?? type;
}
