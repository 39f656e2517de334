// The content of messages: pictures and collapsed JSON.

import { h } from "../../lib/dom.js";
import { prettyJson } from "../../lib/json.js";

const LONGEST_TEXT = 200000; // characters of one text that are shown
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** @param {string} mime */
export const isPicture = (mime) => PICTURES.includes(mime);

/** @param {string} mime @param {string} base64 in the standard or the URL-safe alphabet @param {string} alt */
export const picture = (mime, base64, alt) => h("img", { class: "out", alt,
  src: `data:${mime};base64,${base64.replaceAll("-", "+").replaceAll("_", "/")}` });

/** JSON in a collapsed element, which is rendered when it is first opened. @param {string} title @param {any} value */
export function collapsedJson(title, value) {
  const element = h("details", { class: "json" }, h("summary", null, title));
  element.addEventListener("toggle", () => {
    if (element.childElementCount > 1) return;
    const text = typeof value === "string" ? prettyJson(value) ?? value : JSON.stringify(value, null, 2);
    element.append(h("pre", { role: "group", tabindex: "0", "aria-label": title }, text.slice(0, LONGEST_TEXT)));
  });
  return element;
}
