// The files of a session: a tree with upload and download, and one open file.

import { ApiError, act, open } from "../../lib/api.js";
import { attempt, confirmThen } from "../../lib/attempt.js";
import { announce, h, list, setText } from "../../lib/dom.js";
import { base64, dropZone, saveBlob } from "../../lib/files.js";
import { fileSize, pluralize } from "../../lib/format.js";
import { fileView } from "./file_view.js";

/** @typedef {{name: string, path: string, is_directory: boolean, size: number | null}} Entry */

const HOME = "/home/gem";
const MOST = 500; // entries of a directory that are shown
const CHUNK = 2 ** 20; // bytes of a file in one request

/** Return a file's path relative to the home directory, quoted for bash. Not every session sees the
 * file at its absolute path. @param {string} file */
const relative = (file) => `'${file.replace(`${HOME}/`, "./").replaceAll("'", "'\\''")}'`;

/** @param {import("./session.js").Session} session */
export function sessionFiles({ ids }) {
  const plane = dataPlane(ids);
  const tree = h("ul", { class: "files", "aria-label": "Files of the session" });
  const note = h("p", { class: "none", role: "status" });
  const chosen = h("input", { type: "file", multiple: true, class: "sr", "aria-label": "Files to upload", tabindex: "-1",
    onchange: () => attempt(() => upload([...chosen.files])) });
  const view = fileView({ read, save, download, rename, discard });
  const left = h("section", { class: "panel", "aria-label": "Files" },
    h("div", { class: "title" }, h("h2", null, "Files"), h("code", null, HOME)),
    h("p", { class: "buttons" }, h("button", { onclick: () => chosen.click() }, "Upload"), chosen,
      h("button", { onclick: () => attempt(show) }, "Reload")), note, tree,
    h("p", { class: "hint" }, "Drop files here."));
  dropZone(left, (files) => attempt(() => upload(files)));
  const element = h("div", { class: "beside" }, left, view.element);
  /** @type {Map<string, any>} */
  const opened = new Map(); // the lists of the open directories, by path

  /** @param {string} directory @param {Element} into */
  async function fill(directory, into) {
    const { files } = await plane.data("/v1/file/list", { path: directory, sort_by: "type" });
    list(into, files.slice(0, MOST), (/** @type {Entry} */ entry) => `${entry.path} ${entry.is_directory}`, row);
    if (into === tree) setText(note, files.length ? "" : "No files yet.");
    if (files.length > MOST) announce(`The first ${MOST} of ${files.length} entries are shown.`);
  }

  /** @param {Entry} first */
  function row(first) {
    if (first.is_directory) return directoryRow(first);
    const size = h("small");
    const button = h("button", { class: "file", onclick: () => attempt(() => view.show(first.path)) }, first.name);
    const element = h("li", null, button, size);
    element.update = (/** @type {Entry} */ entry) => setText(size, entry.size === null ? "" : fileSize(entry.size));
    return element;
  }

  /** @param {Entry} directory */
  function directoryRow(directory) {
    const inside = h("ul", { hidden: true, "aria-label": directory.name });
    const button = h("button", { class: "directory", "aria-expanded": "false", onclick: () => attempt(async () => {
      const isOpening = inside.hidden;
      if (isOpening) await fill(directory.path, inside);
      if (isOpening) opened.set(directory.path, inside);
      else opened.delete(directory.path);
      inside.hidden = !isOpening;
      button.setAttribute("aria-expanded", String(isOpening));
    }) }, `${directory.name}/`);
    return h("li", null, button, inside);
  }

  async function show() {
    await fill(HOME, tree);
    for (const [directory, into] of opened) {
      if (into.isConnected) await fill(directory, into).catch(() => undefined); // may be deleted
      else opened.delete(directory);
    }
  }

  /** @param {string} file @returns {Promise<Blob>} */
  async function read(file) {
    return (await plane.send("/v1/file/download", {}, { path: file })).blob();
  }

  /** Write a file in chunks, because the size of a request is limited. @param {string} file @param {Blob} data */
  async function save(file, data) {
    for (let start = 0; start === 0 || start < data.size; start += CHUNK) {
      const content = await base64(data.slice(start, start + CHUNK));
      await plane.data("/v1/file/write", { file, content, encoding: "base64", append: start > 0 });
    }
    await show();
  }

  /** @param {File[]} files */
  async function upload(files) {
    for (const file of files) {
      setText(note, `Uploading ${file.name}…`);
      await save(`${HOME}/${file.name}`, file);
    }
    chosen.value = "";
    announce(`${pluralize(files.length, "file")} uploaded.`);
  }

  /** @param {string} file */
  async function download(file) {
    const data = await read(file);
    // untyped, so that no browser opens it as a page
    saveBlob(new Blob([data], { type: "application/octet-stream" }), file.slice(file.lastIndexOf("/") + 1));
  }

  /** Run a command in the session's bash, for operations that no route of the data plane offers. @param {string} command */
  async function inBash(command) {
    const { exit_code, stderr } = await plane.data("/v1/bash/exec", { command, session_id: "console", exec_dir: HOME });
    if (exit_code !== 0) throw new Error(stderr || `The command ended with exit code ${exit_code}.`);
    await show();
  }

  /** @param {string} file @param {string} to */
  async function rename(file, to) {
    const refuse = "echo 'A file with that name exists.' >&2; false";
    await inBash(`if [ -e ${relative(to)} ]; then ${refuse}; else mv -- ${relative(file)} ${relative(to)}; fi`);
  }

  /** @param {string} file @param {() => void} then */
  function discard(file, then) {
    confirmThen("Delete this file?", h("code", null, file), "Delete", async () => {
      await inBash(`rm -- ${relative(file)}`);
      then();
    });
  }

  return { element, show: () => attempt(show) };
}

/** The data plane of a session. "send" returns the response, "data" the data of its JSON.
 * @param {() => {ToolId: string, SessionId: string}} idsOf */
function dataPlane(idsOf) {
  let query = "";

  /** @param {string} route @param {any} [options] @param {Record<string, string>} [parameters] */
  async function send(route, options, parameters = {}) {
    query ||= new URL((await act("GetSession", idsOf())).Endpoint).search; // with the session's token
    return open(`/served${route}${query}&${new URLSearchParams(parameters)}`, options);
  }

  /** @param {string} route @param {any} body @returns {Promise<any>} */
  async function data(route, body) {
    const result = await (await send(route, { method: "POST", body })).json();
    if (result.success) return result.data;
    throw new ApiError(200, result.message);
  }

  return { send, data };
}
