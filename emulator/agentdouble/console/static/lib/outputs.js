// The outputs of an execution, shown as they arrive: text, pictures, and HTML. HTML is shown in a frame
// without an origin or network access; its scripts run only when the user asks for it.

import { ansiNodes, initialStyle } from "./ansi.js";
import { h } from "./dom.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/svg+xml"];
const LARGEST_HEIGHT = 600;
const LONGEST_TEXT = 200000; // characters of one output or stream that are shown
const LONGEST_LINE = 4000; // characters; a longer last line can no longer be overwritten
const CHUNKS = /[^]{1,20000}\n|[^]+$/g; // chunks of whole lines; the oldest are removed first
const DRAWN_MS = 40; // not requestAnimationFrame, which pauses in background tabs
const LONGEST_NAME = 200;
const MOST = 200; // outputs of one execution; the last ones are shown

/** The outputs of one execution. */
export function outputArea() {
  const element = h("div", { class: "outputs" });
  let clearsNext = false; // clear_output(wait=True): the next output replaces the others
  /** @type {(ReturnType<typeof streamText> & {name: string}) | null} */
  let stream = null;

  /** @param {string} name @param {string} text */
  function write(name, text) {
    if (stream?.name !== name || stream.element !== element.lastChild) {
      stream = { name, ...streamText(name) };
      append(stream.element);
    }
    stream.write(text);
  }

  /** @param {Element} output */
  function append(output) {
    element.append(output);
    if (element.childElementCount > MOST) element.firstChild.remove();
  }

  /** @param {string} kind @param {any} content */
  function show(kind, content) {
    const id = content.transient?.display_id;
    const output = kind === "error" ? pre(content.traceback.join("\n"), " error") : display(content.data);
    if (id) output.dataset.display = id;
    const old = id && [...element.children].find((child) => child.dataset.display === id);
    if (kind === "update_display_data" && old) old.replaceWith(output);
    else if (kind !== "update_display_data") append(output);
  }

  return {
    element,
    /** @param {string} kind @param {any} content */
    add(kind, content) {
      if (kind === "clear_output") {
        clearsNext = content.wait;
        if (!clearsNext) element.replaceChildren();
        return;
      }
      if (clearsNext) element.replaceChildren();
      clearsNext = false;
      try {
        if (kind === "stream") write(content.name, content.text);
        else show(kind, content);
      } catch { // the session's code can send anything
        append(h("p", { class: "note" }, "This output is not in the notebook format."));
      }
    },
    /** @param {string} text @param {string} [kind] */
    note(text, kind = "note") {
      element.append(h("p", { class: kind }, text));
    },
  };
}

/** @param {string} text @param {string} [kind] */
const pre = (text, kind = "") => h("pre", { class: `out${kind}` }, ansiNodes(text.slice(-LONGEST_TEXT)));

/** @param {Record<string, any>} data MIME types with the same output @returns {HTMLElement} */
function display(data) {
  const plain = joined(data["text/plain"]);
  const picture = PICTURES.find((mime) => data[mime]);
  if (picture) return h("img", { class: "out", alt: plain.slice(0, LONGEST_NAME) || "Picture", src: dataUrl(picture, joined(data[picture])) });
  if (data["text/html"]) return page(joined(data["text/html"]), plain);
  const document = data["application/json"];
  return pre(plain || (document && JSON.stringify(document, null, 2)) || "");
}

/** @param {string | string[] | undefined} text */
const joined = (text) => (Array.isArray(text) ? text.join("") : text ?? "");

/** Return a URL for an image, in which the scripts of an SVG do not run. @param {string} mime @param {string} content */
const dataUrl = (mime, content) => (mime === "image/svg+xml"
  ? `data:${mime},${encodeURIComponent(content)}` : `data:${mime};base64,${content.replace(/\s/g, "")}`);

/** HTML in a frame without scripts; a button shows it in a new frame with them.
 * @param {string} html @param {string} plain */
function page(html, plain) {
  if (!/<script/i.test(html)) return frame("/frame", html, plain);
  const element = h("div", { class: "scripted" }, frame("/frame", html, plain));
  const button = h("button", { onclick: () => {
    element.firstChild.replaceWith(frame("/frame/scripts", html, plain));
    button.textContent = "Run its scripts again";
  } }, "Run its scripts");
  element.append(h("p", { class: "buttons" }, button,
    h("span", { class: "note" }, "They have no network access and cannot reach anything outside their frame.")));
  return element;
}

/** @param {string} address @param {string} html @param {string} plain */
function frame(address, html, plain) {
  const element = h("iframe", { class: "out", sandbox: "allow-scripts", src: address, title: plain.slice(0, LONGEST_NAME) || "HTML output" });
  const onMessage = (/** @type {MessageEvent} */ event) => {
    if (!element.isConnected) return removeEventListener("message", onMessage);
    if (event.source !== element.contentWindow) return undefined;
    if (event.data === "ready") element.contentWindow.postMessage(html, "*");
    else element.style.height = `${Math.min(LARGEST_HEIGHT, Math.max(20, Number(event.data) || 20))}px`;
    return undefined;
  };
  addEventListener("message", onMessage);
  return element;
}

/** The text of a stream. Complete lines are appended once; only the last line is drawn again.
 * @param {string} name "stdout" or "stderr" */
function streamText(name) {
  const line = h("span"); // the last line, which a carriage return overwrites
  const element = h("pre", { class: `out ${name}` }, line);
  /** @type {{node: Element, size: number}[]} */
  const chunks = [];
  const style = initialStyle();
  let last = "";
  let size = 0;
  let pending = "";
  let scheduled = false;

  function draw() {
    scheduled = false;
    const text = last + pending.slice(-2 * LONGEST_TEXT);
    pending = "";
    const whole = text.length - text.lastIndexOf("\n") > LONGEST_LINE ? text.length : text.lastIndexOf("\n") + 1;
    const visible = overwritten(text.slice(0, whole)).slice(-LONGEST_TEXT);
    for (const chunk of visible.match(CHUNKS) ?? []) addChunk(chunk);
    last = overwritten(text.slice(whole));
    line.replaceChildren(...ansiNodes(last, { classes: style.classes }));
  }

  /** @param {string} text */
  function addChunk(text) {
    const node = h("span", null, ansiNodes(text, style));
    line.before(node);
    chunks.push({ node, size: text.length });
    size += text.length;
    while (size > LONGEST_TEXT && chunks.length > 1) {
      const oldest = /** @type {{node: Element, size: number}} */ (chunks.shift());
      oldest.node.remove();
      size -= oldest.size;
    }
  }

  return {
    element,
    /** @param {string} text */
    write(text) {
      pending += text;
      if (pending.length > 4 * LONGEST_TEXT) pending = pending.slice(-2 * LONGEST_TEXT);
      if (!scheduled) setTimeout(draw, DRAWN_MS);
      scheduled = true;
    },
  };
}

/** Apply carriage returns to text, as a terminal does. @param {string} text */
const overwritten = (text) => text.split("\n").map((line) => {
  const end = line.endsWith("\r") ? line.length - 1 : line.length;
  return line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}).join("\n");
