// Terminal colours as elements; every other control sequence is left out.

import { h } from "./dom.js";

const SEQUENCE = /\x1b\[([\d;]*)m|\x1b\[[\d;?]*[A-Za-z]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)/g;

/** The colours in force, which the next piece of a text begins with. */
export const plain = () => ({ classes: /** @type {Set<string>} */ (new Set()) });

/** @param {string} text @param {{classes: Set<string>}} [ink] @returns {Node[]} */
export function coloured(text, ink = plain()) {
  /** @type {Node[]} */
  const parts = [];
  let place = 0;
  const add = (/** @type {string} */ piece) => {
    if (piece) parts.push(ink.classes.size ? h("span", { class: [...ink.classes].join(" ") }, piece) : new Text(piece));
  };
  for (const match of text.matchAll(SEQUENCE)) {
    add(text.slice(place, match.index));
    place = match.index + match[0].length;
    if (match[1] !== undefined) ink.classes = changed(ink.classes, match[1].split(";").map(Number));
  }
  add(text.slice(place));
  return parts;
}

/** @param {Set<string>} classes @param {number[]} codes */
function changed(classes, codes) {
  const next = new Set(classes);
  const without = (/** @type {string} */ start) => {
    for (const name of next) if (name.startsWith(start)) next.delete(name);
  };
  for (let place = 0; place < codes.length; place += 1) {
    const code = codes[place];
    if (code === 0) next.clear();
    else if (code === 1) next.add("ansi-bold");
    else if (code === 22) without("ansi-bold");
    else if (code === 38 || code === 48) place += codes[place + 1] === 5 ? 2 : 4; // no palette of 256 here
    else if (code === 39) without("ansi-fg");
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      without("ansi-fg");
      next.add(`ansi-fg${code % 10}`);
    }
  }
  return next;
}
