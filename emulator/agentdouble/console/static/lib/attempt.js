// Run a user's action: show a failure in a dialog, and ask for confirmation before it deletes something.

import { dialog } from "./dialog.js";
import { h } from "./dom.js";

/** Run an action; show its error in a dialog. @param {() => Promise<any>} action */
export async function attempt(action) {
  try {
    await action();
  } catch (error) {
    const close = h("button", { onclick: () => box.close(), autofocus: true }, "Close");
    const box = dialog("That did not work", h("p", null, /** @type {Error} */ (error).message),
      h("p", { class: "buttons" }, close));
  }
}

/** Ask for confirmation, then attempt the action.
 * @param {string} title @param {string | Node} text @param {string} verb the label of the button that confirms
 * @param {() => Promise<any>} action */
export function confirmThen(title, text, verb, action) {
  const box = dialog(title, h("p", null, text), h("p", { class: "buttons" },
    h("button", { onclick: () => box.close(), autofocus: true }, "Cancel"),
    h("button", { class: "danger", onclick: () => {
      box.close();
      attempt(action);
    } }, verb)));
}
