// The text of a stream, drawn as it grows: what is complete is appended and never drawn again.

import { coloured, plain } from "./ansi.js";
import { h } from "./dom.js";

const LONGEST_TEXT = 200000; // characters that stay in sight
const LONGEST_LINE = 4000; // characters of a line that may still be overwritten
const PIECES = /[^]{1,20000}\n|[^]+$/g; // whole lines, which leave one piece after the other
const DRAWN_MS = 40; // no frame, which a tab in the background does not have

/** @param {string} name "stdout" or "stderr" */
export function streamText(name) {
  const line = h("span"); // the last line, which a carriage return overwrites
  const element = h("pre", { class: `out ${name}` }, line);
  /** @type {{node: Element, size: number}[]} */
  const pieces = [];
  const ink = plain();
  let last = "";
  let size = 0;
  let waiting = "";
  let drawn = false;

  function draw() {
    drawn = false;
    const text = last + waiting.slice(-2 * LONGEST_TEXT);
    waiting = "";
    const whole = text.length - text.lastIndexOf("\n") > LONGEST_LINE ? text.length : text.lastIndexOf("\n") + 1;
    const visible = overwritten(text.slice(0, whole)).slice(-LONGEST_TEXT);
    for (const piece of visible.match(PIECES) ?? []) append(piece);
    last = overwritten(text.slice(whole));
    line.replaceChildren(...coloured(last, { classes: ink.classes }));
  }

  /** @param {string} text */
  function append(text) {
    const node = h("span", null, coloured(text, ink));
    line.before(node);
    pieces.push({ node, size: text.length });
    size += text.length;
    while (size > LONGEST_TEXT && pieces.length > 1) {
      const oldest = /** @type {{node: Element, size: number}} */ (pieces.shift());
      oldest.node.remove();
      size -= oldest.size;
    }
  }

  return {
    element,
    /** @param {string} text */
    write(text) {
      waiting += text;
      if (waiting.length > 4 * LONGEST_TEXT) waiting = waiting.slice(-2 * LONGEST_TEXT);
      if (!drawn) setTimeout(draw, DRAWN_MS);
      drawn = true;
    },
  };
}

/** Text after its carriage returns, as a terminal leaves it. @param {string} text */
const overwritten = (text) => text.split("\n").map((line) => {
  const end = line.endsWith("\r") ? line.length - 1 : line.length;
  return line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}).join("\n");
