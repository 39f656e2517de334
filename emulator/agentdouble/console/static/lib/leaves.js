// The values of a JSON document by their paths, for comparisons.

/** Return the values of a document that contain no others, by path; the lines of a text.
 * @param {any} value @param {string} path @param {Map<string, string>} [leaves] */
export function leavesOf(value, path, leaves = new Map()) {
  if (value && typeof value === "object" && Object.keys(value).length) {
    for (const [name, item] of Object.entries(value)) leavesOf(item, `${path}.${name}`, leaves);
  } else if (typeof value === "string" && value.includes("\n")) {
    value.split("\n").forEach((line, index) => leaves.set(`${path}, line ${index + 1}`, line));
  } else leaves.set(path, typeof value === "string" ? value : JSON.stringify(value));
  return leaves;
}
