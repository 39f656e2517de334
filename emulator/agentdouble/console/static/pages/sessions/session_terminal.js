// A terminal in a session. The session draws its screen; what comes is rows of text with their styles.

import { ApiError, lines, open, post } from "../../lib/api.js";
import { attempt, copyButton } from "../../lib/bar.js";
import { h, setText } from "../../lib/dom.js";
import { bytesOf } from "./keys.js";
import { screenView } from "./screen_view.js";

/** @param {import("./session.js").Session} session */
export function sessionTerminal({ path, shown }) {
  const keys = h("textarea", { class: "keys", "aria-label": "Terminal", "aria-describedby": "terminal-hint", rows: 1,
    spellcheck: "false", autocapitalize: "off", autocomplete: "off", onkeydown: pressed, oninput: written, onpaste: pasted });
  const view = screenView(keys);
  const state = h("p", { class: "none", role: "status" }, "Opening a terminal…");
  const again = h("button", { onclick: () => begin(), hidden: true }, "Open a new one");
  const command = () => `agentdouble attach ${shown()?.UserSessionId ?? ""}`;
  const attach = h("code");
  const element = h("section", { class: "panel terminal", "aria-label": "Terminal" },
    h("div", { class: "buttons" }, state, again), view.element,
    h("p", { class: "hint", id: "terminal-hint" }, "Shift+Tab leaves the terminal. Ctrl+C copies what is selected, or interrupts. "
      + "It ends with this page. For the session's kernel, in a shell: ", attach, " ", copyButton("Copy", command)));
  /** @type {AbortController | null} */
  let closing = null;
  let terminal = "";
  let waiting = "";
  let sends = false;
  let size = { columns: 80, rows: 24 };

  /** @param {string} text */
  async function type(text) {
    waiting += text;
    if (sends || !terminal) return;
    sends = true;
    while (waiting) {
      const sent = waiting;
      waiting = "";
      await tell({ text: sent });
    }
    sends = false;
  }

  /** @param {any} what */
  async function tell(what) {
    try {
      await post(`${path}/terminals/typed`, { terminal, ...what });
    } catch (error) {
      if (terminal) setText(state, /** @type {Error} */ (error).message);
    }
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.isComposing || (event.key === "Tab" && event.shiftKey)) return;
    const copies = event.ctrlKey && event.key.toLowerCase() === "c" && String(getSelection()) !== "";
    const bytes = copies ? null : bytesOf(event, view.applicationKeys());
    if (bytes === null) return;
    event.preventDefault();
    event.stopPropagation();
    type(bytes);
  }

  /** What a keyboard of another script, or a dictation, has written. @param {InputEvent} event */
  function written(event) {
    if (event.isComposing) return;
    type(keys.value);
    keys.value = "";
  }

  /** @param {ClipboardEvent} event */
  function pasted(event) {
    event.preventDefault();
    // a paste must not end its own brackets
    const text = (event.clipboardData?.getData("text/plain") ?? "").replaceAll("\x1b", "").replace(/\r?\n/g, "\r");
    type(view.bracketedPaste() ? `\x1b[200~${text}\x1b[201~` : text);
  }

  async function begin() {
    const mine = new AbortController();
    closing = mine;
    again.hidden = true;
    setText(state, "Opening a terminal…");
    view.clear();
    size = view.size();
    let said = "The terminal has ended.";
    try {
      const answer = await open(`${path}/terminals`, { method: "POST", body: size, signal: mine.signal });
      for await (const line of lines(answer)) {
        if (!line) continue;
        const event = JSON.parse(line);
        if (event.event === "screen") view.draw(event);
        else if (event.event === "opened") opened(event.terminal);
        else said = event.message;
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof ApiError && error.status === 501) view.element.hidden = true;
      said = error instanceof ApiError ? error.message : "The connection to the terminal is lost.";
    }
    if (mine.signal.aborted) return;
    terminal = "";
    setText(state, said);
    again.hidden = false;
  }

  /** @param {string} id */
  function opened(id) {
    terminal = id;
    setText(state, "Connected to a shell in the session.");
    keys.focus({ preventScroll: true });
    type("");
  }

  const watched = new ResizeObserver(() => {
    const next = view.size();
    if (!terminal || (next.columns === size.columns && next.rows === size.rows)) return;
    size = next;
    tell({ size });
  });

  return {
    element,
    show() {
      setText(attach, command());
      watched.observe(view.element);
      if (!closing) attempt(begin);
    },
    hide: () => watched.disconnect(),
    close() {
      watched.disconnect();
      terminal = "";
      closing?.abort();
    },
  };
}
