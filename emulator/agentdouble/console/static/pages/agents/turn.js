// One turn of a conversation: its messages by author, and a link to its request.

import { h, setText } from "../../lib/dom.js";
import { collapsedJson, isPicture, picture } from "./content.js";

export const YOU = "you";
const LONGEST_TEXT = 200000; // characters of one text that are shown
const DRAWN_MS = 50; // between two drawings of a text that grows

/** @typedef {ReturnType<typeof newTurn>} Turn */

/** @param {() => void} onGrow is called when the turn has grown */
export function newTurn(onGrow) {
  const link = h("a", { hidden: true });
  const messages = h("div");
  const element = h("article", { class: "turn" }, messages, link);
  /** @type {Map<string, {text: string, element: Element}>} */
  const growing = new Map();
  let drawing = 0;

  function draw() {
    clearTimeout(drawing);
    drawing = 0;
    for (const live of growing.values()) setText(live.element, live.text);
    onGrow();
  }

  /** @param {string} author @param {Element} child */
  function add(author, child) {
    let last = /** @type {any} */ (messages.lastElementChild);
    if (last?.author !== author) {
      last = h("div", { class: author === YOU ? "said yours" : "said" }, h("header", null, author));
      last.author = author;
      messages.append(last);
    }
    last.append(child);
    onGrow();
    return child;
  }

  return {
    element,
    /** Show a text. Partial texts are joined until the complete text replaces them.
     * @param {string} author @param {string} text @param {{partial?: boolean, thought?: boolean}} [options] */
    text(author, text, { partial = false, thought = false } = {}) {
      const key = `${thought} ${author}`;
      const kind = thought ? "words thought" : "words";
      const live = growing.get(key) ?? { text: "", element: add(author, h("div", { class: kind })) };
      live.text = (partial ? live.text + text : text).slice(0, LONGEST_TEXT);
      growing.set(key, live);
      if (partial) drawing ||= setTimeout(draw, DRAWN_MS);
      else {
        draw();
        growing.delete(key);
      }
    },
    /** Complete the partial texts; later ones start new texts. */
    complete() {
      draw();
      growing.clear();
    },
    /** @param {string} author @param {string} title @param {any} value */
    json: (author, title, value) => add(author, collapsedJson(title, value)),
    /** @param {string} author @param {string} mime @param {string} base64 */
    data(author, mime, base64) {
      const element = isPicture(mime) ? picture(mime, base64, `Picture of ${author}`)
        : h("p", { class: "note" }, `${mime || "Data"}, ${Math.round(base64.length * 0.75)} bytes`);
      element.addEventListener("load", onGrow); // a picture's height is known only now
      add(author, element);
    },
    /** @param {string} text */
    failed(text) {
      messages.append(h("p", { class: "bad" }, text));
      onGrow();
    },
    /** @param {string} text */
    note(text) {
      messages.append(h("p", { class: "note" }, text));
      onGrow();
    },
    /** @param {string | number | null | undefined} id of the turn's request in the journal */
    request(id) {
      if (id == null) return;
      setText(link, `request ${id}`);
      link.setAttribute("href", `/requests/${id}`);
      link.hidden = false;
      onGrow();
    },
  };
}
