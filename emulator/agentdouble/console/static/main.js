// The shell: which page is shown, its address, the keys.

import { decoded, navigate } from "./lib/address.js";
import { hasToken, takeToken, useToken } from "./lib/api.js";
import { topBar } from "./lib/bar.js";
import { h } from "./lib/dom.js";
import { double, follow, watch } from "./lib/live.js";

/** @typedef {{element: Element, update?: () => void, tick?: () => void, close?: () => void,
 *             move?: (by: number) => void, filter?: HTMLInputElement, go?: (id: string) => void}} Page */

/** A page is loaded when it is first shown. "make" makes the page of "/path" and "/path/within"; where
 * "one" is there, it makes the page of one thing, "/path/id/within", whose id has so many "parts".
 * @type {{path: string, name: string, make: () => Promise<Page>, parts?: number,
 *         one?: (id: string) => Promise<Page>}[]} */
const PAGES = [
  { path: "/", name: "Overview", make: async () => (await import("./pages/overview.js")).overview() },
  { path: "/sessions", name: "Sessions", make: async () => (await import("./pages/sessions/sessions.js")).sessions(),
    parts: 1, one: async (id) => (await import("./pages/sessions/session.js")).session(id) },
  { path: "/requests", name: "Requests", make: async () => (await import("./pages/requests/requests.js")).requests() },
  { path: "/agents", name: "Agents", make: async () => (await import("./pages/agents/agents.js")).agents(),
    parts: 4, one: async () => (await import("./pages/agents/agent.js")).agent() },
  { path: "/tools", name: "Tools", make: async () => (await import("./pages/tools/tools.js")).tools() },
  { path: "/unknowns", name: "Unknowns", make: async () => (await import("./pages/unknowns.js")).unknowns() },
  { path: "/faults", name: "Faults", make: async () => (await import("./pages/faults.js")).faults() },
];

const main = /** @type {HTMLElement} */ (document.getElementById("page"));
const nav = /** @type {HTMLElement} */ (document.getElementById("pages"));
/** @type {Page | null} */
let page = null;
let current = "";

/** The page's entry, what follows its path in the address, and the place within a page of one thing. */
function place() {
  const [, first = "", ...rest] = location.pathname.split("/");
  const entry = PAGES.find((candidate) => candidate.path === `/${first}`) ?? PAGES[0];
  const parts = entry.parts ?? 0;
  return { entry, id: decoded(rest.slice(0, parts).join("/")), within: decoded(rest.slice(parts).join("/")) };
}

async function show() {
  if (!hasToken()) return;
  const { entry, id, within } = place();
  document.title = `${id || within || entry.name} · agentdouble`;
  for (const link of nav.querySelectorAll("a")) {
    if (link.getAttribute("href") === entry.path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const next = entry.one && id ? `${entry.path}/${id}` : entry.path;
  if (next !== current) {
    current = next;
    page?.close?.();
    page = null;
    main.setAttribute("aria-busy", "true");
    const loaded = await (entry.one && id ? entry.one(id) : entry.make()).catch(missing);
    if (current !== next) return void loaded.close?.(); // another page was chosen meanwhile
    page = loaded;
    main.replaceChildren(page.element);
    main.removeAttribute("aria-busy");
    if (double.status === "refused") refused();
    if (double.ready) {
      page.update?.();
      page.tick?.();
    }
  }
  page?.go?.(place().within); // it may be another one by now
}

/** Stand in for a page whose module did not come; the next answer of the double loads it.
 * @returns {Page} */
function missing() {
  const element = h("p", { class: "none" }, "The double did not send this page. It loads when the double answers again.");
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

/** Say where the token is; what the page has shown, and what the user has typed, stays. */
function refused() {
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
  const writes = target.closest("input, textarea, select, dialog");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && writes && !target.closest("dialog")) { // the keys of pages work again
    event.preventDefault(); // or Chromium empties a filter
    return target.blur();
  }
  if (writes) return;
  const chosen = PAGES[Number(event.key) - 1];
  if (chosen) navigate(chosen.path);
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
  watch(() => {
    bar.update();
    bar.tick();
    if (double.status === "refused") refused();
    if (double.ready) page?.update?.();
  });
  follow();
} else {
  double.status = "refused";
  bar.update();
  refused();
}
