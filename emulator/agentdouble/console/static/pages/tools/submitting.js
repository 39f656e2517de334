// What forms of pages have in common: a button that does something with them, and why it failed.

import { ApiError } from "../../lib/api.js";
import { dialog, factRows, h, setText } from "../../lib/dom.js";

/**
 * Make a form's buttons and the place for what is wrong. Shift+Enter in the form is its first button,
 * and so is Enter in a field of one line.
 * @param {string} verb
 * @param {(signal: AbortSignal) => Promise<any>} what reads the form, and throws what is wrong with it
 * @param {any[]} content
 * @param {any[]} [others] more buttons
 */
export function submitting(verb, what, content, others = []) {
  const problem = h("p", { class: "bad", role: "alert" });
  const button = h("button", { class: "primary", "aria-keyshortcuts": "Shift+Enter", onclick: run }, verb);
  const element = h("div", { onkeydown: typed }, content, problem, h("p", { class: "buttons" }, button, others));
  const stopping = new AbortController();

  /** @param {KeyboardEvent} event */
  function typed(event) {
    const isLine = /** @type {Element} */ (event.target).matches("input:not([type=file])");
    if (event.key !== "Enter" || !(event.shiftKey || isLine)) return;
    event.preventDefault();
    run();
  }

  async function run() {
    if (button.disabled) return;
    button.disabled = true;
    setText(problem, "");
    try {
      await what(stopping.signal);
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      const forms = /** @type {any[]} */ ([...element.querySelectorAll(".form")]);
      if (!(error instanceof ApiError && forms.some((form) => form.refuse(message)))) setText(problem, message);
      problem.scrollIntoView({ block: "nearest" });
    }
    button.disabled = false;
  }

  return { element, close: () => stopping.abort() };
}

/** Ask in a dialog for what a form has. @param {string} title @param {any[]} content @param {string} verb
 * @param {() => Promise<any>} what */
export function askInDialog(title, content, verb, what) {
  const cancel = h("button", { onclick: () => box.close() }, "Cancel");
  const box = dialog(title, submitting(verb, async () => {
    await what();
    box.close();
  }, content, [cancel]).element);
  /** @type {HTMLElement | null} */ (box.querySelector("input, textarea, select"))?.focus();
}

/** Names with values, without those that have none. @param {Record<string, any>} values */
export const facts = (values) => h("dl", { class: "facts" }, factRows(values));
