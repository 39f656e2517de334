// Terminal colours as elements. Other control sequences are dropped.

import { h } from "./dom.js";

const SEQUENCE = /\x1b\[([\d;]*)m|\x1b\[[\d;?]*[A-Za-z]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)/g;

/** Return the state of a text without colours; ansiNodes updates it for the next chunk. */
export const initialStyle = () => ({ classes: /** @type {Set<string>} */ (new Set()) });

/** @param {string} text @param {{classes: Set<string>}} [style] @returns {Node[]} */
export function ansiNodes(text, style = initialStyle()) {
  /** @type {Node[]} */
  const nodes = [];
  let end = 0; // of the previous sequence
  const add = (/** @type {string} */ chunk) => {
    if (chunk) nodes.push(style.classes.size ? h("span", { class: [...style.classes].join(" ") }, chunk) : new Text(chunk));
  };
  for (const match of text.matchAll(SEQUENCE)) {
    add(text.slice(end, match.index));
    end = match.index + match[0].length;
    if (match[1] !== undefined) style.classes = applied(style.classes, match[1].split(";").map(Number));
  }
  add(text.slice(end));
  return nodes;
}

/** @param {Set<string>} classes @param {number[]} codes */
function applied(classes, codes) {
  const next = new Set(classes);
  const remove = (/** @type {string} */ start) => {
    for (const name of next) if (name.startsWith(start)) next.delete(name);
  };
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index];
    if (code === 0) next.clear();
    else if (code === 1) next.add("ansi-bold");
    else if (code === 22) remove("ansi-bold");
    else if (code === 38 || code === 48) index += codes[index + 1] === 5 ? 2 : 4; // skips 256-colour and RGB codes
    else if (code === 39) remove("ansi-fg");
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      remove("ansi-fg");
      next.add(`ansi-fg${code % 10}`);
    }
  }
  return next;
}
