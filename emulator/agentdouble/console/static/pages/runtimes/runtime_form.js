// What a runtime is made of: the same form creates one and makes a new version.

import { h, dialog, setText } from "../../lib/dom.js";

const NUMBERS = /** @type {[string, string, number][]} */ ([
  ["MinInstance", "Instances kept without a request", 0], ["MaxInstance", "Instances there may be", 4],
  ["MaxConcurrency", "Requests an instance has at a time", 10], ["MemoryMb", "Memory in MB, no limit if empty", 0],
]);

/** The parts of an ArtifactUrl. @param {string} url @returns {Record<string, string>} */
export function programOf(url) {
  const [path, query = ""] = url.replace(/^file:\/\//, "").split("?");
  return { directory: decodeURIComponent(path), ...Object.fromEntries(new URLSearchParams(query)) };
}

/** @param {Record<string, string>} program */
function artifactUrl({ directory, ...rest }) {
  const query = new URLSearchParams(Object.entries(rest).filter(([, value]) => value));
  return `file://${directory.split("/").map(encodeURIComponent).join("/")}?${query}`;
}

/** @param {string} text lines NAME=VALUE */
const variables = (text) => text.split("\n").filter((one) => one.trim()).map((one) => {
  const [name, ...value] = one.split("=");
  return { Key: name.trim(), Value: value.join("=") };
});

/**
 * Ask for a runtime's program and limits.
 * @param {string} title @param {any} before of a runtime as GetRuntime shows it, null of a new one
 * @param {(fields: any) => Promise<any>} save
 */
export function runtimeForm(title, before, save) {
  const program = before ? programOf(before.ArtifactUrl) : {};
  const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {any} */ value, /** @type {any} */ more = {}) => {
    const element = h(more.rows ? "textarea" : "input", { id: `of-${name}`, value: value ?? "", autocomplete: "off", spellcheck: "false", ...more });
    return { name, element, row: h("p", { class: "field" }, h("label", { for: `of-${name}` }, label), element) };
  };
  const texts = {
    Name: field("Name", "Name", "", { placeholder: "greeter", required: true, autofocus: true }),
    directory: field("directory", "Directory of this machine", program.directory, { placeholder: "/home/me/agents", required: true }),
    command: field("command", "Command that listens on $PORT", program.command, { placeholder: "python server.py" }),
    application: field("application", "or application", program.application, { placeholder: "module:app or file.py:app" }),
    python: field("python", "Its interpreter (empty: the double's own)", program.python, { placeholder: ".venv/bin/python" }),
    Description: field("Description", "What it is for", before?.Description),
    Envs: field("Envs", "Environment, a line NAME=VALUE each",
      before?.Envs?.map((/** @type {any} */ one) => `${one.Key}=${one.Value}`).join("\n"), { rows: 2 }),
  };
  const numbers = NUMBERS.map(([name, label, usual]) =>
    field(name, label, before?.[name] ?? (usual || name === "MinInstance" ? usual : ""), { type: "number", min: 0, required: before?.[name] != null }));
  const release = h("input", { type: "checkbox", id: "of-release", checked: true });
  const failed = h("p", { class: "bad", role: "alert" });
  const send = h("button", { class: "primary" }, before ? "Make the version" : "Create");

  /** @param {Event} event */
  async function submit(event) {
    event.preventDefault();
    const value = (/** @type {keyof typeof texts} */ name) => texts[name].element.value.trim();
    const { directory: _directory, application: _application, command: _command, python: _python, ...kept } = program;
    const fields = {
      Description: value("Description"), Envs: variables(texts.Envs.element.value), ArtifactType: "file",
      ArtifactUrl: artifactUrl({ ...kept, directory: value("directory"), command: value("command"),
        application: value("application"), python: value("python") }),
      ...Object.fromEntries(numbers.filter((one) => one.element.value !== "").map((one) => [one.name, Number(one.element.value)])),
      ...(before ? { ReleaseEnable: release.checked } : { Name: value("Name"), RoleName: "local" }),
    };
    send.disabled = true;
    try {
      await save(fields);
      box.close();
    } catch (error) {
      setText(failed, /** @type {Error} */ (error).message);
      send.disabled = false;
    }
  }

  const rows = Object.values(texts).filter((one) => !before || one.name !== "Name").map((one) => one.row);
  const box = dialog(title, h("form", { class: "runtime-form", onsubmit: submit }, rows,
    h("div", { class: "pairs" }, numbers.map((one) => one.row)),
    before && h("p", null, release, " ", h("label", { for: "of-release" }, "Bring it into force at once")),
    failed,
    h("p", { class: "buttons" }, h("button", { type: "button", onclick: () => box.close() }, "Cancel"), send)));
  return box;
}
