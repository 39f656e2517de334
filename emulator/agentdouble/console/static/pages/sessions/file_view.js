// One file of a session: a text that can be edited, or a picture.

import { attempt, confirmThen } from "../../lib/attempt.js";
import { announce, h, setText } from "../../lib/dom.js";
import { fileSize } from "../../lib/format.js";

const LARGEST = 2 * 2 ** 20; // bytes; larger files are not shown
const PICTURES = new Map([["png", "image/png"], ["jpg", "image/jpeg"], ["jpeg", "image/jpeg"], ["gif", "image/gif"]]);

/** @typedef {{read: (file: string) => Promise<Blob>, save: (file: string, data: Blob) => Promise<void>,
 *   download: (file: string) => Promise<void>, rename: (file: string, to: string) => Promise<void>,
 *   discard: (file: string, then: () => void) => void}} Operations */

/** @param {Operations} operations */
export function fileView(operations) {
  const name = h("h2", null, "No file is open");
  const facts = h("span");
  const text = h("textarea", { "aria-label": "Text of the file", rows: 20, spellcheck: "false", hidden: true,
    oninput: () => { saveButton.disabled = text.readOnly; } });
  const picture = h("img", { class: "out", alt: "", hidden: true });
  const none = h("p", { class: "none" }, "Choose a file to see its content.");
  const saveButton = h("button", { class: "primary", disabled: true, onclick: () => attempt(save) }, "Save");
  const path = h("input", { "aria-label": "Path of the file", type: "text" });
  const renameButton = h("button", { onclick: () => attempt(rename) }, "Rename");
  const actions = h("p", { class: "buttons", hidden: true }, saveButton,
    h("button", { onclick: () => attempt(() => operations.download(file)) }, "Download"), path, renameButton,
    h("button", { class: "danger", onclick: () => operations.discard(file, close) }, "Delete"));
  const element = h("section", { class: "panel fileview", "aria-label": "File" },
    h("div", { class: "title" }, name, facts), none, actions, text, picture);
  let file = "";
  let savedText = ""; // as last read or saved

  /** @param {string} target */
  async function show(target) {
    const data = await operations.read(target);
    file = target;
    setText(name, target.slice(target.lastIndexOf("/") + 1));
    path.value = target;
    actions.hidden = false;
    saveButton.disabled = true;
    const kind = PICTURES.get(target.slice(target.lastIndexOf(".") + 1).toLowerCase());
    const content = kind || data.size > LARGEST ? null : decoded(await data.arrayBuffer());
    text.readOnly = content?.includes("\r") ?? true; // a textarea would change the line ends
    setText(facts, text.readOnly && content !== null ? `${fileSize(data.size)}, read-only because it has carriage returns`
      : fileSize(data.size));
    text.hidden = content === null;
    text.value = savedText = content ?? "";
    picture.hidden = !kind;
    URL.revokeObjectURL(picture.src);
    if (kind) picture.src = URL.createObjectURL(new Blob([data], { type: kind }));
    picture.alt = kind ? target : "";
    none.hidden = content !== null || Boolean(kind);
    setText(none, data.size > LARGEST ? "It is too large to show here." : "It is not text.");
  }

  async function save() {
    const current = await operations.read(file).then((data) => data.arrayBuffer()).then(decoded, () => null); // may be deleted
    if (current === savedText) return overwrite();
    return confirmThen("Overwrite this file?", "The file has changed since you opened it.", "Overwrite", overwrite);
  }

  async function overwrite() {
    savedText = text.value;
    await operations.save(file, new Blob([savedText]));
    saveButton.disabled = true;
    setText(facts, fileSize(new Blob([savedText]).size));
    announce("The file is saved.");
  }

  async function rename() {
    await operations.rename(file, path.value);
    await show(path.value);
  }

  function close() {
    actions.hidden = text.hidden = picture.hidden = true;
    none.hidden = false;
    setText(name, "No file is open");
    setText(facts, "");
    setText(none, "The file is deleted.");
  }

  return { element, show };
}

/** Return a file's text, or null if it is not text. @param {ArrayBuffer} data */
function decoded(data) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
