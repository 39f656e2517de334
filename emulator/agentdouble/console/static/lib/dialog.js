// A modal dialog.

import { h } from "./dom.js";

/**
 * Show a modal dialog; closing removes it.
 * @param {string} title @param {...import("./dom.js").Child} content
 * @returns {HTMLDialogElement}
 */
export function dialog(title, ...content) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const element = h("dialog", { "aria-labelledby": "dialog-title", onclose: () => element.remove() },
    heading, ...content);
  document.body.append(element);
  element.showModal();
  return element;
}
