// The result of a tool, as MCP has it: text is text, pictures are pictures, and nothing acts.

import { copyButton } from "../../lib/bar.js";
import { h } from "../../lib/dom.js";
import { unfolded } from "../../lib/words.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];
const LONGEST_TEXT = 200000; // characters of one part that are shown
const MOST_PARTS = 100;

/** @param {any} result @param {string} time how long the call took */
export function resultView(result, time) {
  const parts = Array.isArray(result.content) ? result.content : [];
  const state = result.isError ? "worse" : "ok";
  return [
    h("p", { class: "facts" }, h("span", { class: "tag", "data-state": state }, result.isError ? "error" : "ok"),
      h("span", null, time), copyButton("Copy as JSON", () => JSON.stringify(result, null, 2))),
    ...parts.slice(0, MOST_PARTS).map(part),
    parts.length > MOST_PARTS && h("p", { class: "none" }, `and ${parts.length - MOST_PARTS} more parts`),
    result.structuredContent !== undefined && text("Structured content", JSON.stringify(result.structuredContent, null, 2)),
  ].filter(Boolean);
}

/** @param {any} item an item of content */
function part(item) {
  if (item?.type === "text") return text("Text", unfolded(String(item.text)) ?? String(item.text));
  if (item?.type === "image" && PICTURES.includes(item.mimeType)) return picture(item);
  if (item?.type === "resource" && typeof item.resource?.text === "string") {
    return text(`Resource ${String(item.resource.uri)}`, item.resource.text);
  }
  const bytes = item?.data ?? item?.resource?.blob;
  if (typeof bytes !== "string") return text(String(item?.type ?? "Part"), JSON.stringify(item, null, 2));
  const kind = item.mimeType ?? item.resource?.mimeType ?? "unknown type";
  return h("p", { class: "none" }, `${item.type}, ${String(kind).slice(0, 100)}, ${bytes.length} characters of base64`);
}

/** An image does not run the scripts of an SVG. @param {any} item */
function picture(item) {
  return h("img", { class: "out", alt: "Picture of the result", src: `data:${item.mimeType};base64,${String(item.data).replace(/\s/g, "")}` });
}

/** @param {string} title @param {string} content */
function text(title, content) {
  const rest = content.length - LONGEST_TEXT;
  return h("div", { class: "part" }, h("h3", null, title.slice(0, 200)),
    h("pre", { role: "group", tabindex: "0", "aria-label": title.slice(0, 200) }, content.slice(0, LONGEST_TEXT)),
    rest > 0 && h("p", { class: "none" }, `and ${rest} more characters`));
}
