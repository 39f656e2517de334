// What can stand at the cursor of the code, from the session's own kernel.

import { h, say } from "../../lib/dom.js";
import { counted } from "../../lib/words.js";

/** Python counts characters, a text field counts UTF-16 units. @param {string} text @param {number} units */
const characters = (text, units) => [...text.slice(0, units)].length;
/** @param {string} text @param {number} count */
const units = (text, count) => [...text].slice(0, count).join("").length;

/** @param {HTMLTextAreaElement} field @param {(request: {code: string, cursor_pos: number}) => Promise<any>} complete */
export function completions(field, complete) {
  const choices = h("select", { size: 6, "aria-label": "Completions", class: "completions", hidden: true,
    onkeydown: chosen, onclick: () => choices.value && take(choices.value), onblur: hide });
  let start = 0;
  let end = 0;

  function hide() {
    choices.hidden = true;
  }

  /** @param {string} text */
  function take(text) {
    hide();
    field.setRangeText(text, start, end, "end");
    field.focus();
  }

  /** @param {KeyboardEvent} event */
  function chosen(event) {
    if (event.key === "Enter" || event.key === "Tab") take(choices.value);
    else if (event.key === "Escape") {
      hide();
      field.focus();
    } else return;
    event.preventDefault();
  }

  async function ask() {
    const code = field.value;
    const found = await complete({ code, cursor_pos: characters(code, field.selectionStart) });
    if (field.value !== code) return; // it was changed meanwhile
    start = units(code, found.cursor_start);
    end = units(code, found.cursor_end);
    say(counted(found.matches.length, "completion"));
    if (found.matches.length === 1) take(found.matches[0]);
    if (found.matches.length < 2) return;
    choices.replaceChildren(...found.matches.slice(0, 200).map((/** @type {string} */ one) => h("option", { value: one }, one)));
    choices.hidden = false;
    choices.selectedIndex = 0;
    choices.focus();
  }

  return { element: choices, ask };
}
