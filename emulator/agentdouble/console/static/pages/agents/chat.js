// A conversation: what was said, what an agent called, and which request each turn was.

import { ApiError } from "../../lib/api.js";
import { h, say, setText } from "../../lib/dom.js";
import { unfolded } from "../../lib/words.js";

export const YOU = "you";
const LONGEST_TEXT = 200000; // characters of one text that are shown
const KEPT = 100; // turns
const DRAWN_MS = 50; // how often a text that grows is drawn
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** @typedef {ReturnType<typeof newTurn>} Turn */

/**
 * @param {(text: string, turn: Turn, signal: AbortSignal) => Promise<any>} send returns false if another
 *   conversation goes on with it
 */
export function chat(send) {
  const log = h("div", { class: "turns", role: "log", tabindex: "0", "aria-label": "Conversation" });
  const words = h("textarea", { "aria-label": "Message", rows: 3, onkeydown: typed,
    placeholder: "Enter sends, Shift+Enter starts a new line" });
  const go = h("button", { class: "primary", onclick: () => submit() }, "Send");
  const stop = h("button", { onclick: () => running?.abort(), disabled: true }, "Stop");
  const tools = h("span", { class: "ways" });
  const element = h("div", { class: "chat" }, log,
    h("div", { class: "composer" }, words, h("div", { class: "buttons" }, go, stop, tools)));
  /** @type {AbortController | null} */
  let running = null;
  let sticks = true; // to its end, until somebody scrolls away from there
  log.addEventListener("scroll", () => {
    sticks = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  }, { passive: true });

  function toEnd() {
    if (sticks) log.scrollTop = log.scrollHeight;
  }

  /** @param {KeyboardEvent} event */
  function typed(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  }

  function turn() {
    const newest = newTurn(toEnd);
    if (log.firstChild?.matches(".none")) log.replaceChildren();
    log.append(newest.element);
    while (log.childElementCount > KEPT) log.firstChild.remove();
    return newest;
  }

  /** @param {string} [text] */
  async function submit(text = words.value) {
    if (!text.trim() || running) return;
    words.value = "";
    running = new AbortController();
    sticks = true;
    go.disabled = true;
    stop.disabled = false;
    const current = turn();
    current.says(YOU, text);
    try {
      if (await send(text, current, running.signal) !== false) say("The answer is complete.");
    } catch (error) {
      current.failed(running.signal.aborted ? "Stopped." : /** @type {Error} */ (error).message);
      if (error instanceof ApiError) current.request(error.request);
    }
    running = null;
    go.disabled = false;
    stop.disabled = true;
  }

  return {
    element, tools, turn, submit,
    focus: () => words.focus(),
    stop: () => running?.abort(),
    clear: () => log.replaceChildren(),
    get busy() { return running !== null; },
    /** @param {string} text shown in place of turns */
    none: (text) => log.replaceChildren(h("p", { class: "none" }, text)),
  };
}

/** @param {() => void} grown is called when it has become longer */
function newTurn(grown) {
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
    grown();
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
    grown();
    return child;
  }

  return {
    element,
    /** Show a text; parts of a text are joined until the whole text comes.
     * @param {string} author @param {string} text @param {{partial?: boolean, thought?: boolean}} [how] */
    says(author, text, { partial = false, thought = false } = {}) {
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
    /** Begin new texts, whatever parts came before. */
    whole() {
      draw();
      growing.clear();
    },
    /** @param {string} author @param {string} title @param {any} value */
    folded: (author, title, value) => add(author, folded(title, value)),
    /** @param {string} author @param {string} mime @param {string} base64 */
    data(author, mime, base64) {
      const element = isPicture(mime) ? picture(mime, base64, `Picture of ${author}`)
        : h("p", { class: "note" }, `${mime || "Data"}, ${Math.round(base64.length * 0.75)} bytes`);
      element.addEventListener("load", grown); // only then its height is known
      add(author, element);
    },
    /** @param {string} text */
    failed(text) {
      messages.append(h("p", { class: "bad" }, text));
      grown();
    },
    /** @param {string} text */
    note(text) {
      messages.append(h("p", { class: "note" }, text));
      grown();
    },
    /** @param {string | number | null | undefined} id of the request that this turn was */
    request(id) {
      if (id == null) return;
      setText(link, `request ${id}`);
      link.setAttribute("href", `/requests/${id}`);
      link.hidden = false;
      grown();
    },
  };
}

/** @param {string} mime */
export const isPicture = (mime) => PICTURES.includes(mime);

/** @param {string} mime @param {string} base64 also of the alphabet for URLs @param {string} alt */
export const picture = (mime, base64, alt) => h("img", { class: "out", alt,
  src: `data:${mime};base64,${base64.replaceAll("-", "+").replaceAll("_", "/")}` });

/** JSON that is made when it is opened. @param {string} title @param {any} value */
export function folded(title, value) {
  const element = h("details", { class: "json" }, h("summary", null, title));
  element.addEventListener("toggle", () => {
    if (element.childElementCount > 1) return;
    const text = typeof value === "string" ? unfolded(value) ?? value : JSON.stringify(value, null, 2);
    element.append(h("pre", { role: "group", tabindex: "0", "aria-label": title }, text.slice(0, LONGEST_TEXT)));
  });
  return element;
}
