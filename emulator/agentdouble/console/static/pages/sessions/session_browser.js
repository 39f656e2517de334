// The browser of a session: its picture, and what a person does to it.

import { open } from "../../lib/api.js";
import { h, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";
import { plane } from "../../lib/plane.js";

const LOOK_MS = 1000;
const HELD = ["Control", "Alt", "Shift", "Meta"];
const NAMED = new Set(["Enter", "Backspace", "Delete", "Escape", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home",
  "End", "PageUp", "PageDown", "Insert", ...Array.from({ length: 12 }, (_, index) => `F${index + 1}`)]);

/** @param {import("./session.js").Session} session */
export function sessionBrowser({ path, found }) {
  const address = h("input", { type: "text", "aria-label": "Address", spellcheck: "false", autocapitalize: "off",
    placeholder: "https://…", oninput: () => { edited = true; }, onkeydown: entered });
  const state = h("p", { class: "none", role: "status" }, "Starting the session's browser…");
  const again = h("button", { onclick: () => look(), hidden: true }, "Look again");
  const picture = h("img", { alt: "", hidden: true, onclick: clicked, ondblclick: clicked, oncontextmenu: clicked, draggable: "false" });
  const page = h("div", { class: "page", role: "application", tabindex: "0", "aria-label": "Page in the browser",
    "aria-describedby": "browser-hint", hidden: true, onkeydown: pressed, onpaste: pasted }, picture);
  const element = h("section", { class: "panel browser", "aria-label": "Browser" },
    h("div", { class: "tools" },
      h("button", { onclick: () => go("back"), "aria-label": "Back" }, "←"),
      h("button", { onclick: () => go("forward"), "aria-label": "Forward" }, "→"),
      h("button", { onclick: () => go("reload") }, "Reload"), address,
      h("button", { class: "primary", onclick: () => go(address.value) }, "Go")),
    h("div", { class: "buttons" }, state, again), page, h("p", { class: "hint", id: "browser-hint" },
      "A click on the picture is a click there; what is typed while it has the focus is typed there. Tab leaves it."));
  let edited = false;
  let seen = false;
  let works = Promise.resolve();
  let typed = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let next;

  /** Take a picture, and then again a second later, until that fails. */
  async function look() {
    clearTimeout(next);
    if (!seen) return;
    const paused = found()?.state === "paused";
    if (paused) setText(state, "The session is paused.");
    if (!paused && !document.hidden && double.status === "live") {
      try {
        await see();
      } catch (error) {
        return failed(error);
      }
    }
    clearTimeout(next); // an action may have looked meanwhile
    if (seen) next = setTimeout(look, LOOK_MS);
  }

  async function see() {
    const [shown, answer] = await Promise.all([plane(path, "/browser"), open(`${path}/v1/browser/screenshot?format=jpeg&quality=70`)]);
    if (!answer.headers.get("content-type")?.startsWith("image/")) throw new Error((await answer.json()).message);
    const old = picture.src;
    picture.src = URL.createObjectURL(await answer.blob());
    if (old) URL.revokeObjectURL(old);
    picture.alt = shown.title || shown.url;
    picture.hidden = page.hidden = false;
    again.hidden = true;
    setText(state, shown.title || "A page without a title");
    if (!edited && document.activeElement !== address) address.value = shown.url;
  }

  /** @param {unknown} error */
  function failed(error) {
    setText(state, /** @type {Error} */ (error).message);
    again.hidden = false;
  }

  /** Do things one after the other, and look when they are done. @param {() => Promise<any>} what */
  function after(what) {
    works = works.then(what).then(look, failed);
  }

  /** @param {any} action */
  const act = (action) => after(() => plane(path, "/v1/browser/actions", action));

  /** @param {string} where */
  function go(where) {
    if (!where.trim()) return;
    edited = false;
    after(() => plane(path, "/browser", { go: where.trim() }));
  }

  /** @param {KeyboardEvent} event */
  function entered(event) {
    if (event.key === "Enter") go(address.value);
  }

  /** @param {MouseEvent} event */
  function clicked(event) {
    event.preventDefault();
    page.focus({ preventScroll: true });
    const box = picture.getBoundingClientRect();
    const x = Math.round(((event.clientX - box.left) * picture.naturalWidth) / box.width);
    const y = Math.round(((event.clientY - box.top) * picture.naturalHeight) / box.height);
    const kind = { contextmenu: "RIGHT_CLICK", dblclick: "DOUBLE_CLICK" }[event.type] ?? "CLICK";
    if (kind !== "CLICK" || event.detail < 2) act({ action_type: kind, x, y });
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const { key } = event;
    if (key === "Tab" || event.isComposing || HELD.includes(key)) return;
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "v") return; // the paste comes
    event.stopPropagation(); // no key is one of the console's here
    const one = [...key].length === 1;
    const keys = [event.ctrlKey && "Control", event.altKey && "Alt", event.metaKey && "Meta",
      event.shiftKey && !one && "Shift"].filter(Boolean);
    if (!one && !NAMED.has(key)) return;
    event.preventDefault();
    if (keys.length) act({ action_type: "HOTKEY", keys: [...keys, key] });
    else if (one) type(key);
    else act({ action_type: "PRESS", key });
  }

  /** Type characters key by key; those that come meanwhile are one action. @param {string} text */
  function type(text) {
    const first = !typed;
    typed += text;
    if (!first) return;
    after(() => {
      const sent = typed;
      typed = "";
      return plane(path, "/v1/browser/actions", { action_type: "TYPING", text: sent, use_clipboard: false });
    });
  }

  /** @param {ClipboardEvent} event */
  function pasted(event) {
    event.preventDefault();
    const text = event.clipboardData?.getData("text/plain");
    if (text) act({ action_type: "TYPING", text, use_clipboard: true });
  }

  function hide() {
    seen = false;
    clearTimeout(next);
  }

  return {
    element, hide,
    show() {
      seen = true;
      look();
    },
    close() {
      hide();
      if (picture.src) URL.revokeObjectURL(picture.src);
    },
  };
}
