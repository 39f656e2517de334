// The shell: which page is shown at which address, and the keyboard shortcuts.

import { decoded, navigate } from "./lib/address.js";
import { hasToken, takeToken, useToken } from "./lib/api.js";
import { topBar } from "./lib/bar.js";
import { h } from "./lib/dom.js";
import { double, follow, onChange } from "./lib/live.js";

/** @typedef {{element: Element, update?: () => void, tick?: () => void, close?: () => void,
 *             move?: (by: number) => void, filter?: HTMLInputElement, go?: (id: string) => void}} Page */

/** A page's module is loaded when the page is first shown. "load" returns the page for "/path" and,
 * unless it is "single", for "/path/within". With "loadItem", "/path/id/within" has a page for a single
 * item; its id is "idSegments" segments of the address.
 * @typedef {{path: string, name: string, load: () => Promise<Page>, single?: boolean, idSegments?: number,
 *            loadItem?: (id: string) => Promise<Page>}} PageEntry
 * @type {PageEntry[]} */
const PAGES = [
  { path: "/", name: "Overview", load: async () => (await import("./pages/overview.js")).overview() },
  { path: "/sessions", name: "Sessions", load: async () => (await import("./pages/sessions/sessions.js")).sessions(),
    idSegments: 1, loadItem: async (id) => (await import("./pages/sessions/session.js")).session(id) },
  { path: "/requests", name: "Requests", load: async () => (await import("./pages/requests/requests.js")).requests() },
  { path: "/agents", name: "Agents", load: async () => (await import("./pages/agents/agents.js")).agents(),
    idSegments: 4, loadItem: async () => (await import("./pages/agents/agent.js")).agent() },
  { path: "/tools", name: "Tools", load: async () => (await import("./pages/tools/tools.js")).tools() },
  { path: "/unknowns", name: "Unknowns", single: true, load: async () => (await import("./pages/unknowns.js")).unknowns() },
  { path: "/faults", name: "Faults", load: async () => (await import("./pages/faults.js")).faults() },
];

/** What is shown at an address that no page has. @returns {PageEntry} */
const noPage = () => ({ path: location.pathname, name: "Not found", load: async () => ({
  element: h("div", { class: "stack" }, h("section", { class: "panel" }, h("h1", null, "Not found"),
    h("p", null, "The console has no page at ", h("code", null, decoded(location.pathname)), "."),
    h("p", { class: "hint" }, "Go to the ", h("a", { href: "/" }, "overview"), "."))) }) });

const main = /** @type {HTMLElement} */ (document.getElementById("page"));
const nav = /** @type {HTMLElement} */ (document.getElementById("pages"));
/** @type {Page | null} */
let page = null;
let current = "";
/** The element of the page that had the focus last. @type {Element | null} */
let focused = null;
main.addEventListener("focusin", (event) => { focused = /** @type {Element} */ (event.target); });

/** Give the page the focus if it was on an element that is no longer there. */
function keepFocus() {
  // An element that has just been hidden keeps the focus until the page is drawn.
  const isLost = document.activeElement === document.body || document.activeElement === focused;
  if (focused && isLost && !focused.getClientRects().length) main.focus({ preventScroll: true });
}
// A dialog gives the focus back when it closes, and what had it may have gone meanwhile.
document.addEventListener("close", keepFocus, { capture: true });

/** Return what the address names: the entry of PAGES, an item's id if the page has items, and the rest. */
function currentRoute() {
  const [, first = "", ...rest] = location.pathname.split("/");
  const entry = PAGES.find((candidate) => candidate.path === `/${first}` && !(candidate.single && rest.join("")));
  if (!entry) return { entry: noPage(), id: "", within: "" };
  const count = entry.idSegments ?? 0;
  return { entry, id: decoded(rest.slice(0, count).join("/")), within: decoded(rest.slice(count).join("/")) };
}

async function show() {
  if (!hasToken()) return;
  const { entry, id, within } = currentRoute();
  document.title = `${id || within || entry.name} · agentdouble`;
  for (const link of nav.querySelectorAll("a")) {
    if (link.getAttribute("href") === entry.path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const next = entry.loadItem && id ? `${entry.path}/${id}` : entry.path;
  const isFirst = !current;
  if (next !== current) {
    current = next;
    page?.close?.();
    page = null;
    main.setAttribute("aria-busy", "true");
    const loaded = await (entry.loadItem && id ? entry.loadItem(id) : entry.load()).catch(unavailable);
    if (current !== next) return void loaded.close?.(); // the user has gone to another page
    page = loaded;
    // The notice stays where it is: a button that moves between press and release gets no click.
    for (const child of [...main.childNodes]) if (child !== notice) child.remove();
    main.append(page.element);
    main.removeAttribute("aria-busy");
    if (double.status === "refused") askForToken();
    if (double.ready) {
      page.update?.();
      page.tick?.();
    }
    main.scrollTop = 0;
    // so that the next key acts in the page, not on the link that led here or on what has gone
    if (!isFirst && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
  }
  page?.go?.(currentRoute().within); // the address may have changed while the page loaded
  keepFocus();
}

/** A placeholder for a page whose module failed to load; reloads when the double answers again.
 * @returns {Page} */
function unavailable() {
  const element = h("p", { class: "none" }, "This page could not be loaded. It reloads when the double answers again.");
  return { element, update: () => double.status === "live" && location.reload() };
}

const token = h("input", { type: "search", "aria-label": "Address or token", required: true, autocomplete: "off" });
const notice = h("section", { class: "notice panel", role: "alert" },
  h("h1", null, "This address has no valid token"),
  h("p", null, "Open the address that ",
    h("code", null, "agentdouble serve"), " printed, or ", h("code", null, "double.console_url"), ". Or paste it here:"),
  h("form", { class: "tools", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    useToken(token.value);
  } }, token, h("button", { class: "primary" }, "Use")));

/** Ask for a valid token above the page, which keeps its content and what the user has typed. */
function askForToken() {
  if (!main.contains(notice)) main.prepend(notice);
}

document.addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest?.("a[href^='/']");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  navigate(/** @type {string} */ (link.getAttribute("href")));
});

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const isTyping = target.closest("input, textarea, select, dialog");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && isTyping && !target.closest("dialog")) { // leave the field, so that shortcuts work
    event.preventDefault(); // Chromium would clear a search field
    return target.blur();
  }
  if (isTyping) return;
  const selected = PAGES[Number(event.key) - 1];
  if (selected) navigate(selected.path);
  else if (event.key === "j" || event.key === "k") page?.move?.(event.key === "j" ? 1 : -1);
  else if (event.key === "/" && page?.filter) page.filter.focus();
  else return;
  event.preventDefault();
});

takeToken();
addEventListener("hashchange", () => {
  if (location.hash.includes("token=")) location.reload();
});
nav.append(...PAGES.map((entry, index) =>
  h("a", { href: entry.path, "aria-keyshortcuts": index + 1 },
    h("kbd", { "aria-hidden": "true" }, index + 1), entry.name)));
const bar = topBar();
/** @type {HTMLElement} */ (document.getElementById("bar")).append(...bar.elements);
if (hasToken()) {
  show();
  window.addEventListener("popstate", show);
  setInterval(() => { bar.tick(); if (double.ready) page?.tick?.(); }, 1000);
  onChange(() => {
    bar.update();
    bar.tick();
    if (double.status === "refused") askForToken();
    if (double.ready) page?.update?.();
    keepFocus();
  });
  follow();
} else {
  double.status = "refused";
  bar.update();
  askForToken();
}
