// A Swagger or OpenAPI definition: dropped, chosen or pasted.

import { h, say, setText } from "../../lib/dom.js";
import { dropZone } from "../../lib/files.js";
import { FormError } from "../../lib/schema_form.js";

const LARGEST = 24 * 1024 * 1024; // bytes that fit into a request
const SHOWN = 200000; // characters in the text area

/** @param {(stem: string) => void} onName hears the name of a file */
export function definitionField(onName) {
  let large = ""; // a file's text, too long to be shown
  const text = h("textarea", { id: "definition", rows: 8, spellcheck: "false", oninput: () => { large = ""; },
    placeholder: "OpenAPI 3 or Swagger 2, as JSON or YAML" });
  const note = h("p", { class: "hint", role: "status" });
  const file = h("input", { type: "file", id: "definition-file", accept: ".json,.yaml,.yml", onchange: () => take(file.files[0]) });
  const element = h("div", { class: "drop" },
    h("div", { class: "field" }, h("label", { for: "definition-file" }, "Definition file: choose it or drop it here"), file),
    h("div", { class: "field" }, h("label", { for: "definition" }, "Definition"), text), note);
  dropZone(element, ([first]) => take(first), (dropped) => { text.value = dropped; });

  /** @param {File | undefined} chosen */
  async function take(chosen) {
    if (!chosen) return;
    if (chosen.size > LARGEST) return setText(note, `${chosen.name} is larger than ${LARGEST / 2 ** 20} MiB.`);
    const content = await chosen.text();
    large = content.length > SHOWN ? content : "";
    text.value = large ? "" : content;
    setText(note, `${chosen.name}: ${content.length} characters${large ? ", too many to be shown" : ""}.`);
    say(`${chosen.name} is read.`);
    onName(chosen.name.replace(/\.\w+$/, "").replace(/[^\w.-]+/g, "-").replace(/^[^a-zA-Z0-9]+/, "").slice(0, 128));
  }

  return {
    element,
    read() {
      if (large || text.value.trim()) return large || text.value;
      text.focus();
      throw new FormError("A definition is required: drop a file, choose one, or paste its text.");
    },
    /** Select the line that a message names. @param {string} message */
    showPlace(message) {
      const line = Number(/\bin line (\d+)/.exec(message)?.[1]);
      if (!line || large) return;
      const lines = text.value.split("\n");
      const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
      text.focus();
      text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    },
  };
}
