// A form's submit button, with keyboard shortcuts and a place for the error.

import { ApiError } from "../../lib/api.js";
import { dialog } from "../../lib/dialog.js";
import { h, setText } from "../../lib/dom.js";

/**
 * Add a submit button and a place for the error to a form. Shift+Enter submits the form, and so does
 * Enter in a field of one line.
 * @param {string} verb
 * @param {(signal: AbortSignal) => Promise<any>} submit reads and sends the form; an error is shown
 * @param {any[]} content
 * @param {any[]} [others] more buttons
 */
export function submitForm(verb, submit, content, others = []) {
  const problem = h("p", { class: "bad", role: "alert" });
  const button = h("button", { class: "primary", "aria-keyshortcuts": "Shift+Enter", onclick: run }, verb);
  const element = h("div", { onkeydown: onKey }, content, problem, h("p", { class: "buttons" }, button, others));
  const stopping = new AbortController();

  /** @param {KeyboardEvent} event */
  function onKey(event) {
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
      await submit(stopping.signal);
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

/** Show a form in a dialog, which closes after it was submitted.
 * @param {string} title @param {any[]} content @param {string} verb @param {() => Promise<any>} submit */
export function formDialog(title, content, verb, submit) {
  const cancel = h("button", { onclick: () => box.close() }, "Cancel");
  const box = dialog(title, submitForm(verb, async () => {
    await submit();
    box.close();
  }, content, [cancel]).element);
  /** @type {HTMLElement | null} */ (box.querySelector("input, textarea, select"))?.focus();
}
