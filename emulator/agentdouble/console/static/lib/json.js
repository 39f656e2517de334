// JSON that may be invalid, as a value and as indented text.

const DEEPEST = 100; // beyond it, indentation is longer than the text

/** Return the value of JSON, or the text itself if it is not JSON. @param {string} text @returns {any} */
export function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Return JSON as indented text, with JSON in its strings parsed too; null if the text is not JSON
 * or is nested too deeply.
 * @param {string} text @returns {string | null} */
export function prettyJson(text) {
  const value = expandedJson(text);
  return value === undefined ? null : JSON.stringify(value, null, 2);
}

/** Return the value of JSON, with JSON in its strings parsed too; undefined if the text is not JSON
 * or is nested too deeply.
 * @param {string} text @returns {any} */
export function expandedJson(text) {
  try {
    return expanded(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** @param {any} value @param {number} [depth] @returns {any} */
function expanded(value, depth = 0) {
  if (depth > DEEPEST) throw new RangeError("nested too deeply");
  if (Array.isArray(value)) return value.map((item) => expanded(item, depth + 1));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, expanded(item, depth + 1)]));
  }
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return expanded(JSON.parse(value), depth + 1);
  } catch {
    return value;
  }
}
