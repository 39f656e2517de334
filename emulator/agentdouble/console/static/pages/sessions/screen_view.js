// The screen of a terminal: rows of text, those that have scrolled off above them.

import { h } from "../../lib/dom.js";

const MOST_SCROLLED = 2000; // lines
const FLAGS = ["bold", "italic", "underline", "strike"];

/** @typedef {[string] | [string, Record<string, any>]} Run */

/** @param {HTMLTextAreaElement} keys takes the keys; a click on the screen gives it the focus */
export function screenView(keys) {
  const past = h("div", { class: "past" });
  const screen = h("div", { class: "rows" });
  const cursor = h("span", { class: "cursor", "aria-hidden": "true" });
  const probe = h("span", { class: "probe", "aria-hidden": "true" }, "0".repeat(20));
  const element = h("div", { class: "screen", role: "group", "aria-label": "Screen of the terminal", tabindex: "-1",
    onmouseup: () => { if (!String(getSelection())) keys.focus({ preventScroll: true }); } },
  past, h("div", { class: "now" }, screen, cursor, keys), probe);
  let application = false;
  let bracketed = false;

  /** The size of one character. */
  function unit() {
    const { width, height } = probe.getBoundingClientRect();
    return { width: width / 20 || 8, height: height || 18 };
  }

  /** @param {any} event */
  function draw(event) {
    const follows = element.scrollTop + element.clientHeight >= element.scrollHeight - 40;
    const [, rows] = event.size;
    while (screen.childElementCount > rows) screen.lastChild.remove();
    while (screen.childElementCount < rows) screen.append(h("div", { class: "line" }));
    for (const [row, runs] of Object.entries(event.rows)) screen.children[Number(row)]?.replaceChildren(...line(runs));
    past.append(...event.scrolled.map((/** @type {Run[]} */ runs) => h("div", { class: "line" }, line(runs))));
    while (past.childElementCount > MOST_SCROLLED) past.firstChild.remove();
    application = event.application_keys;
    bracketed = event.bracketed_paste;
    cursor.hidden = event.cursor === null;
    if (event.cursor) place(event.cursor);
    if (follows) element.scrollTop = element.scrollHeight;
  }

  /** @param {[number, number]} at */
  function place([column, row]) {
    const { width, height } = unit();
    for (const one of [cursor, keys]) {
      one.style.left = `${column * width}px`;
      one.style.top = `${row * height}px`;
    }
    cursor.style.width = `${width}px`;
    cursor.style.height = `${height}px`;
  }

  return {
    element, draw,
    clear() {
      past.replaceChildren();
      screen.replaceChildren();
    },
    applicationKeys: () => application,
    bracketedPaste: () => bracketed,
    /** How many characters fit. */
    size() {
      const { width, height } = unit();
      const across = element.clientWidth - 24; // its padding
      return { columns: Math.max(20, Math.min(400, Math.floor(across / width))),
        rows: Math.max(5, Math.min(200, Math.floor((element.clientHeight - 20) / height))) };
    },
  };
}

/** @param {Run[]} runs @returns {Node[]} */
const line = (runs) => runs.map(([text, style]) => (style ? styled(text, style) : new Text(text)));

/** @param {string} text @param {Record<string, any>} style */
function styled(text, style) {
  const made = h("span", { class: FLAGS.filter((one) => style[one]).join(" ") }, text);
  const [fg, bg] = style.reverse ? [style.bg ?? "back", style.fg ?? "fore"] : [style.fg, style.bg];
  if (fg !== undefined) made.style.color = colour(fg);
  // a ground in the palette's full colour would leave text on it hard to read
  if (bg !== undefined) made.style.backgroundColor = style.reverse ? colour(bg)
    : `color-mix(in srgb, ${colour(bg)} 35%, var(--terminal-back))`;
  return made;
}

/** A colour of the palette, or one of a program's own. @param {string} name */
const colour = (name) => (/^[0-9a-f]{6}$/.test(name) ? `#${name}` : `var(--terminal-${name})`);
