// A button that copies text to the clipboard.

import { attempt } from "./attempt.js";
import { announce, h, setText } from "./dom.js";

/** @param {string} name the button's label @param {() => string | Promise<string>} text */
export function copyButton(name, text) {
  const button = h("button", {
    onclick: () => attempt(async () => {
      await navigator.clipboard.writeText(await text());
      setText(button, "Copied");
      announce("Copied");
      setTimeout(() => setText(button, name), 1500);
    }),
  }, name);
  return button;
}
