// One file of a session: its text, which can be changed, or its picture.

import { attempt, confirmed } from "../../lib/bar.js";
import { h, say, setText } from "../../lib/dom.js";
import { sized } from "../../lib/files.js";

const LARGEST = 2 * 2 ** 20; // bytes that are shown
const PICTURES = new Map([["png", "image/png"], ["jpg", "image/jpeg"], ["jpeg", "image/jpeg"], ["gif", "image/gif"]]);

/** @typedef {{read: (file: string) => Promise<Blob>, save: (file: string, data: Blob) => Promise<void>,
 *   download: (file: string) => Promise<void>, rename: (file: string, to: string) => Promise<void>,
 *   discard: (file: string, then: () => void) => void}} Acts */

/** @param {Acts} acts */
export function fileView(acts) {
  const name = h("h2", null, "No file is open");
  const facts = h("span");
  const text = h("textarea", { "aria-label": "Text of the file", rows: 20, spellcheck: "false", hidden: true,
    oninput: () => { keep.disabled = text.readOnly; } });
  const picture = h("img", { class: "out", alt: "", hidden: true });
  const none = h("p", { class: "none" }, "Choose a file to see its content.");
  const keep = h("button", { class: "primary", disabled: true, onclick: () => attempt(save) }, "Save");
  const path = h("input", { "aria-label": "Path of the file", type: "text" });
  const move = h("button", { onclick: () => attempt(rename) }, "Rename");
  const actions = h("p", { class: "buttons", hidden: true }, keep,
    h("button", { onclick: () => attempt(() => acts.download(file)) }, "Download"), path, move,
    h("button", { class: "danger", onclick: () => acts.discard(file, close) }, "Delete"));
  const element = h("section", { class: "panel fileview", "aria-label": "File" },
    h("div", { class: "title" }, name, facts), none, actions, text, picture);
  let file = "";
  let opened = ""; // its text, as it was read or saved

  /** @param {string} target */
  async function show(target) {
    const data = await acts.read(target);
    file = target;
    setText(name, target.slice(target.lastIndexOf("/") + 1));
    path.value = target;
    actions.hidden = false;
    keep.disabled = true;
    const kind = PICTURES.get(target.slice(target.lastIndexOf(".") + 1).toLowerCase());
    const content = kind || data.size > LARGEST ? null : decoded(await data.arrayBuffer());
    text.readOnly = content?.includes("\r") ?? true; // a text field would write other line ends
    setText(facts, text.readOnly && content !== null ? `${sized(data.size)}, only to be read: it has carriage returns`
      : sized(data.size));
    text.hidden = content === null;
    text.value = opened = content ?? "";
    picture.hidden = !kind;
    URL.revokeObjectURL(picture.src);
    if (kind) picture.src = URL.createObjectURL(new Blob([data], { type: kind }));
    picture.alt = kind ? target : "";
    none.hidden = content !== null || Boolean(kind);
    setText(none, data.size > LARGEST ? "It is too large to show here." : "It is not text.");
  }

  async function save() {
    const now = await acts.read(file).then((data) => data.arrayBuffer()).then(decoded, () => null); // it may be gone
    if (now === opened) return overwrite();
    return confirmed("Overwrite this file?", "The file has changed since you opened it.", "Overwrite", overwrite);
  }

  async function overwrite() {
    opened = text.value;
    await acts.save(file, new Blob([opened]));
    keep.disabled = true;
    setText(facts, sized(new Blob([opened]).size));
    say("The file is saved.");
  }

  async function rename() {
    await acts.rename(file, path.value);
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

/** The text of a file, null if it is none. @param {ArrayBuffer} data */
function decoded(data) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
