// The outputs of code, as they come. What a session wrote is text, a picture, or HTML in a frame that
// has no origin and no network, and runs its scripts only when asked to.

import { coloured, plain } from "./ansi.js";
import { h } from "./dom.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/svg+xml"];
const LARGEST_HEIGHT = 600;
const LONGEST_TEXT = 200000; // characters of one output that are shown, or stay in sight of a stream
const LONGEST_LINE = 4000; // characters of a line that may still be overwritten
const PIECES = /[^]{1,20000}\n|[^]+$/g; // whole lines, which leave one piece after the other
const DRAWN_MS = 40; // no frame, which a tab in the background does not have
const LONGEST_NAME = 200;
const MOST = 200; // outputs of one execution that are shown, the last ones

/** A place for the outputs of one execution. */
export function outputArea() {
  const element = h("div", { class: "outputs" });
  let clears = false;
  /** @type {(ReturnType<typeof streamText> & {name: string}) | null} */
  let stream = null;

  /** @param {string} name @param {string} text */
  function write(name, text) {
    if (stream?.name !== name || stream.element !== element.lastChild) {
      stream = { name, ...streamText(name) };
      put(stream.element);
    }
    stream.write(text);
  }

  /** @param {Element} output */
  function put(output) {
    element.append(output);
    if (element.childElementCount > MOST) element.firstChild.remove();
  }

  /** @param {string} kind @param {any} content */
  function show(kind, content) {
    const id = content.transient?.display_id;
    const output = kind === "error" ? written(content.traceback.join("\n"), " error") : display(content.data);
    if (id) output.dataset.display = id;
    const old = id && [...element.children].find((child) => child.dataset.display === id);
    if (kind === "update_display_data" && old) old.replaceWith(output);
    else if (kind !== "update_display_data") put(output);
  }

  return {
    element,
    /** @param {string} kind @param {any} content */
    add(kind, content) {
      if (kind === "clear_output") {
        clears = content.wait;
        if (!clears) element.replaceChildren();
        return;
      }
      if (clears) element.replaceChildren();
      clears = false;
      try {
        if (kind === "stream") write(content.name, content.text);
        else show(kind, content);
      } catch { // code can send anything
        put(h("p", { class: "note" }, "An output is not in the notebook format."));
      }
    },
    /** @param {string} text @param {string} [kind] */
    note(text, kind = "note") {
      element.append(h("p", { class: kind }, text));
    },
  };
}

/** @param {string} text @param {string} [kind] */
const written = (text, kind = "") => h("pre", { class: `out${kind}` }, coloured(text.slice(-LONGEST_TEXT)));

/** @param {Record<string, any>} data the same output in several formats @returns {HTMLElement} */
function display(data) {
  const plain = joined(data["text/plain"]);
  const picture = PICTURES.find((mime) => data[mime]);
  if (picture) return h("img", { class: "out", alt: plain.slice(0, LONGEST_NAME) || "Picture", src: address(picture, joined(data[picture])) });
  if (data["text/html"]) return page(joined(data["text/html"]), plain);
  const document = data["application/json"];
  return written(plain || (document && JSON.stringify(document, null, 2)) || "");
}

/** @param {string | string[] | undefined} text */
const joined = (text) => (Array.isArray(text) ? text.join("") : text ?? "");

/** An image does not run the scripts of an SVG. @param {string} mime @param {string} content */
const address = (mime, content) => (mime === "image/svg+xml"
  ? `data:${mime},${encodeURIComponent(content)}` : `data:${mime};base64,${content.replace(/\s/g, "")}`);

/** HTML in a frame; its scripts run in another frame, at each click anew.
 * @param {string} html @param {string} plain */
function page(html, plain) {
  if (!/<script/i.test(html)) return frame("/frame", html, plain);
  const place = h("div", { class: "scripted" }, frame("/frame", html, plain));
  const button = h("button", { onclick: () => {
    place.firstChild.replaceWith(frame("/frame/scripts", html, plain));
    button.textContent = "Run its scripts again";
  } }, "Run its scripts");
  place.append(h("p", { class: "buttons" }, button,
    h("span", { class: "note" }, "They have no network access, and cannot reach anything outside their frame.")));
  return place;
}

/** @param {string} address @param {string} html @param {string} plain */
function frame(address, html, plain) {
  const element = h("iframe", { class: "out", sandbox: "allow-scripts", src: address, title: plain.slice(0, LONGEST_NAME) || "HTML output" });
  const heard = (/** @type {MessageEvent} */ event) => {
    if (!element.isConnected) return removeEventListener("message", heard);
    if (event.source !== element.contentWindow) return undefined;
    if (event.data === "ready") element.contentWindow.postMessage(html, "*");
    else element.style.height = `${Math.min(LARGEST_HEIGHT, Math.max(20, Number(event.data) || 20))}px`;
    return undefined;
  };
  addEventListener("message", heard);
  return element;
}

/** The text of a stream, drawn as it grows: what is complete is appended and never drawn again.
 * @param {string} name "stdout" or "stderr" */
function streamText(name) {
  const line = h("span"); // the last line, which a carriage return overwrites
  const element = h("pre", { class: `out ${name}` }, line);
  /** @type {{node: Element, size: number}[]} */
  const pieces = [];
  const ink = plain();
  let last = "";
  let size = 0;
  let waiting = "";
  let drawn = false;

  function draw() {
    drawn = false;
    const text = last + waiting.slice(-2 * LONGEST_TEXT);
    waiting = "";
    const whole = text.length - text.lastIndexOf("\n") > LONGEST_LINE ? text.length : text.lastIndexOf("\n") + 1;
    const visible = overwritten(text.slice(0, whole)).slice(-LONGEST_TEXT);
    for (const piece of visible.match(PIECES) ?? []) append(piece);
    last = overwritten(text.slice(whole));
    line.replaceChildren(...coloured(last, { classes: ink.classes }));
  }

  /** @param {string} text */
  function append(text) {
    const node = h("span", null, coloured(text, ink));
    line.before(node);
    pieces.push({ node, size: text.length });
    size += text.length;
    while (size > LONGEST_TEXT && pieces.length > 1) {
      const oldest = /** @type {{node: Element, size: number}} */ (pieces.shift());
      oldest.node.remove();
      size -= oldest.size;
    }
  }

  return {
    element,
    /** @param {string} text */
    write(text) {
      waiting += text;
      if (waiting.length > 4 * LONGEST_TEXT) waiting = waiting.slice(-2 * LONGEST_TEXT);
      if (!drawn) setTimeout(draw, DRAWN_MS);
      drawn = true;
    },
  };
}

/** Text after its carriage returns, as a terminal leaves it. @param {string} text */
const overwritten = (text) => text.split("\n").map((line) => {
  const end = line.endsWith("\r") ? line.length - 1 : line.length;
  return line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}).join("\n");
