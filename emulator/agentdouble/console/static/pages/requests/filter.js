// The filter of requests: words of the address, and name:value.

import { operationOf } from "../../lib/words.js";

/** @type {Record<string, (entry: any, value: string) => boolean>} */
const TERMS = {
  status: (entry, value) => new RegExp(`^${value.replace(/[^\dx]/gi, "").replace(/x/gi, "\\d")}`)
    .test(String(entry.status ?? "")),
  method: (entry, value) => entry.method === value.toUpperCase(),
  op: (entry, value) => holds(operationOf(entry), value),
  session: (entry, value) => holds(entry.session ?? "", value),
  unknown: (entry, value) => entry.unknowns.some((/** @type {string} */ unknown) => holds(unknown, value)),
  unread: (entry, value) => entry.unread.some((/** @type {string} */ field) => holds(field, value)),
  fault: (entry, value) => entry.faults.some((/** @type {string} */ fault) => holds(fault, value)),
  slow: (entry, value) => entry.duration_ms > Number(value.replace(/[^\d.]/g, "")),
};

export const EXAMPLES = "status:4xx op:InvokeTool unknown:TTL unread: fault: slow:>100 method:POST";

/** @param {string} text @param {string} part */
const holds = (text, part) => text.toLowerCase().includes(part.toLowerCase());

/** Return the names in a filter that do not exist. @param {string} text */
export const unknownTerms = (text) => [...text.matchAll(/(?:^|\s)(\w+):(?!\/)/g)].map((match) => match[1])
  .filter((name) => !Object.hasOwn(TERMS, name));

/** Make a test of entries. A name that does not exist is looked for as a word.
 * @param {string} text @returns {(entry: any) => boolean} */
export function filterOf(text) {
  const tests = text.split(/\s+/).filter(Boolean).map((word) => {
    const [, name, value] = /^(\w+):(.*)$/.exec(word) ?? [];
    const term = Object.hasOwn(TERMS, name ?? "") ? TERMS[name] : undefined;
    return term ? (/** @type {any} */ entry) => term(entry, value)
      : (/** @type {any} */ entry) => holds(`${entry.method} ${entry.url}`, word);
  });
  return (entry) => tests.every((test) => test(entry));
}
