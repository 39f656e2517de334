// A conversation: its turns, and a field for the next message.

import { ApiError } from "../../lib/api.js";
import { announce, h } from "../../lib/dom.js";
import { YOU, newTurn } from "./turn.js";

const MOST_TURNS = 100;

/** @typedef {import("./turn.js").Turn} Turn */

/**
 * @param {(text: string, turn: Turn, signal: AbortSignal) => Promise<any>} send resolves to false if
 *   another page continues the conversation
 */
export function chat(send) {
  const log = h("div", { class: "turns", role: "log", tabindex: "0", "aria-label": "Conversation" });
  const message = h("textarea", { "aria-label": "Message", rows: 3, onkeydown: onKey,
    placeholder: "Enter sends, Shift+Enter starts a new line" });
  const sendButton = h("button", { class: "primary", onclick: () => submit() }, "Send");
  const stopButton = h("button", { onclick: () => running?.abort(), disabled: true }, "Stop");
  const tools = h("span", { class: "ways" });
  const element = h("div", { class: "chat" }, log,
    h("div", { class: "composer" }, message, h("div", { class: "buttons" }, sendButton, stopButton, tools)));
  /** @type {AbortController | null} */
  let running = null;
  let followsEnd = true; // until the user scrolls up
  log.addEventListener("scroll", () => {
    followsEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  }, { passive: true });

  function scrollToEnd() {
    if (followsEnd) log.scrollTop = log.scrollHeight;
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  }

  function turn() {
    const newest = newTurn(scrollToEnd);
    if (log.firstChild?.matches(".none")) log.replaceChildren();
    log.append(newest.element);
    while (log.childElementCount > MOST_TURNS) log.firstChild.remove();
    return newest;
  }

  /** @param {string} [text] */
  async function submit(text = message.value) {
    if (!text.trim() || running) return;
    message.value = "";
    running = new AbortController();
    followsEnd = true;
    sendButton.disabled = true;
    stopButton.disabled = false;
    const current = turn();
    current.text(YOU, text);
    try {
      if (await send(text, current, running.signal) !== false) announce("The answer is complete.");
    } catch (error) {
      current.failed(running.signal.aborted ? "Stopped." : /** @type {Error} */ (error).message);
      if (error instanceof ApiError) current.request(error.request);
    }
    running = null;
    sendButton.disabled = false;
    stopButton.disabled = true;
  }

  return {
    element, tools, turn, submit,
    focus: () => message.focus(),
    stop: () => running?.abort(),
    clear: () => log.replaceChildren(),
    get busy() { return running !== null; },
    /** @param {string} text shown instead of turns */
    none: (text) => log.replaceChildren(h("p", { class: "none" }, text)),
  };
}
