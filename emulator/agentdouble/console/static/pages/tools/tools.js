// Sandbox tools and MCP services, and one of them, or a new one, beside.

import { navigate } from "../../lib/address.js";
import { actAll } from "../../lib/api.js";
import { h, setText, table } from "../../lib/dom.js";
import { double, newsOf } from "../../lib/live.js";
import { own } from "../../lib/schema.js";
import { newService } from "./new_service.js";
import { service } from "./service.js";
import { newTool, tool } from "./tool.js";

/** @typedef {"tool" | "service"} Kind */
/** "update" reads it anew, "draw" shows what the page knows.
 * @typedef {{element: Element, update?: () => void, draw?: () => void, close?: () => void}} Detail */

/** Where a kind of resource is, how it is named, and what shows one or makes a new one.
 * @type {Record<Kind, {title: string, noun: string, list: string, field: string, key: string, none: string,
 *   says: (one: any) => string, one: (id: string) => Detail, make: () => Detail}>} */
const KINDS = {
  tool: { title: "Sandbox tools", noun: "tool", list: "ListTools", field: "Tools", key: "ToolId",
    none: "There is no tool.", says: (item) => item.ToolId, one: tool, make: newTool },
  service: { title: "MCP services", noun: "service", list: "ListMCPServices", field: "MCPServices", key: "MCPServiceId",
    none: "No services yet. Create one from an address, a definition or a command.", says: (item) => item.ProtocolType,
    one: service, make: newService },
};
const NAMES = /** @type {Kind[]} */ (Object.keys(KINDS));

/** @param {Kind} kind @param {any} item */
const pathOf = (kind, item) => `/tools/${kind}/${encodeURIComponent(item[KINDS[kind].key])}`;

export function tools() {
  const lists = NAMES.map(listOf);
  const filter = h("input", { type: "search", "aria-label": "Filter tools and services", placeholder: "Name or id",
    "aria-keyshortcuts": "/", oninput: () => lists.forEach((list) => list.filter(filter.value)) });
  const left = h("div", { class: "stack" }, h("div", { class: "tools" }, filter), lists.map((list) => list.element));
  const right = h("section", { class: "panel detail", "aria-label": "Chosen" });
  const element = h("div", { class: "stack resources" }, h("h1", null, "Tools and services"),
    h("p", { class: "back" }, h("a", { href: "/tools" }, "All tools and services")),
    h("div", { class: "beside" }, left, right));
  let detail = /** @type {Detail | null} */ (null);
  let chosen = "";
  let current = /** @type {string | null} */ (null);
  let read = "";
  let reading = false;

  function choose() {
    if (!double.ready || current === chosen) return;
    current = chosen;
    detail?.close?.();
    const [, kind, name] = /^(\w+)\/(.+)$/s.exec(chosen) ?? [];
    detail = detailOf(kind, name);
    right.replaceChildren(detail?.element ?? h("p", { class: "none" }, "Choose a tool or a service, or create one."));
    element.classList.toggle("detailed", Boolean(chosen));
    for (const list of lists) list.mark(chosen);
  }

  async function load() {
    const news = newsOf("tool", "service");
    if (double.status !== "live" || news === read || reading) return;
    read = news;
    reading = true;
    detail?.update?.();
    try {
      await Promise.all(lists.map((list) => list.load()));
    } catch { /* the double has gone: its return reads anew */ }
    reading = false;
    load(); // what came meanwhile
  }

  return {
    element,
    filter,
    update() {
      choose();
      detail?.draw?.();
      load();
    },
    close: () => detail?.close?.(),
    /** @param {string} id */
    go(id) {
      chosen = id;
      choose();
    },
    /** @param {number} by */
    move(by) {
      const all = lists.flatMap((list) => list.paths());
      const place = all.indexOf(location.pathname);
      const next = all[place < 0 ? 0 : Math.min(all.length - 1, Math.max(0, place + by))];
      if (next) navigate(next);
    },
  };
}

/** @param {string | undefined} kind @param {string} name @returns {Detail | null} */
function detailOf(kind, name) {
  if (kind === "new") return own(KINDS, name)?.make() ?? null;
  return own(KINDS, kind ?? "")?.one(name) ?? null;
}

/** @param {Kind} kind */
function listOf(kind) {
  const { title, noun, list, field, key, none, says } = KINDS[kind];
  const rows = table({
    label: title,
    columns: ["Name", kind === "tool" ? "Id" : "Protocol"],
    height: 34,
    className: "named",
    key: (item) => pathOf(kind, item),
    row: (item) => {
      const name = h("a", { href: pathOf(kind, item) });
      const more = h("span", { class: "number" });
      return Object.assign(h("div", null, h("span", null, name), more), { update: (/** @type {any} */ now) => {
        setText(name, now.Name);
        setText(more, says(now));
      } });
    },
  });
  const empty = h("p", { class: "none", hidden: true }, none);
  const heading = h("h2", null, title);
  let all = /** @type {any[]} */ ([]);
  let items = all;
  let word = "";

  function draw() {
    items = all.filter((item) => `${item.Name} ${says(item)}`.toLowerCase().includes(word));
    setText(heading, all.length > 9 ? `${title} (${all.length})` : title);
    rows.show(items);
    rows.element.hidden = !items.length;
    empty.hidden = items.length > 0;
    setText(empty, all.length ? `No ${noun} fits.` : none);
  }

  return {
    element: h("section", { class: "panel", "aria-label": title },
      h("div", { class: "heading" }, heading, h("a", { class: "button", href: `/tools/new/${kind}` }, `New ${noun}`)), rows.element, empty),
    async load() {
      all = await actAll(list, field);
      draw();
    },
    /** @param {string} text */
    filter(text) {
      word = text.toLowerCase();
      draw();
    },
    /** @param {string} id */
    mark: (id) => rows.mark(id.startsWith(`${kind}/`) ? pathOf(kind, { [key]: id.slice(kind.length + 1) }) : null),
    paths: () => items.map((item) => pathOf(kind, item)),
  };
}
