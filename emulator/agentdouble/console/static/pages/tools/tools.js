// The lists of sandbox tools and MCP services, and next to them one of these or the form for a new one.

import { navigate } from "../../lib/address.js";
import { actAll } from "../../lib/api.js";
import { h, setName, setText } from "../../lib/dom.js";
import { double, versionOf } from "../../lib/live.js";
import { own } from "../../lib/schema.js";
import { table } from "../../lib/table.js";
import { newService } from "./new_service.js";
import { service } from "./service.js";
import { newTool, tool } from "./tool.js";

/** @typedef {"tool" | "service"} Kind */
/** "update" loads the resource again, "draw" shows what lib/live.js knows.
 * @typedef {{element: Element, update?: () => void, draw?: () => void, close?: () => void}} Detail */

/** For each kind of resource: its List action with fields, its texts, the text of a row, and the details.
 * @type {Record<Kind, {title: string, noun: string, list: string, field: string, key: string, none: string,
 * rowText: (item: any) => string, detail: (id: string) => Detail, newDetail: () => Detail}>} */
const KINDS = {
  tool: { title: "Sandbox tools", noun: "tool", list: "ListTools", field: "Tools", key: "ToolId",
    none: "No tools yet.", rowText: (item) => item.ToolId, detail: tool, newDetail: newTool },
  service: { title: "MCP services", noun: "service", list: "ListMCPServices", field: "MCPServices", key: "MCPServiceId",
    none: "No services yet. Create one from an address, a definition or a command.", rowText: (item) => item.ProtocolType,
    detail: service, newDetail: newService },
};
const NAMES = /** @type {Kind[]} */ (Object.keys(KINDS));

/** @param {Kind} kind @param {any} item */
const detailPath = (kind, item) => `/tools/${kind}/${encodeURIComponent(item[KINDS[kind].key])}`;

export function tools() {
  const lists = NAMES.map(listOf);
  const filter = h("input", { type: "search", "aria-label": "Filter tools and services", placeholder: "Name or id",
    "aria-keyshortcuts": "/", oninput: () => lists.forEach((list) => list.filter(filter.value)) });
  const left = h("div", { class: "stack" }, h("div", { class: "tools" }, filter), lists.map((list) => list.element));
  const right = h("section", { class: "panel detail", "aria-label": "Chosen", tabindex: "-1" });
  const element = h("div", { class: "stack resources" }, h("h1", null, "Tools and services"),
    h("p", { class: "back" }, h("a", { href: "/tools" }, "All tools and services")),
    h("div", { class: "beside" }, left, right));
  let detail = /** @type {Detail | null} */ (null);
  let chosen = "";
  let isShown = false;
  let current = /** @type {string | null} */ (null);
  let shownVersion = "";
  let isLoading = false;

  function choose() {
    if (!double.ready || current === chosen) return;
    current = chosen;
    detail?.close?.();
    const [, kind, name] = /^(\w+)\/(.+)$/s.exec(chosen) ?? [];
    detail = detailOf(kind, name);
    right.replaceChildren(detail?.element ?? h("p", { class: "none" },
      chosen ? `There is no page ${chosen} here.` : "Choose a tool or a service, or create one."));
    element.classList.toggle("detailed", Boolean(chosen));
    for (const list of lists) list.mark(chosen);
  }

  async function load() {
    const version = versionOf("tool", "service");
    if (double.status !== "live" || version === shownVersion || isLoading) return;
    shownVersion = version;
    isLoading = true;
    detail?.update?.();
    try {
      await Promise.all(lists.map((list) => list.load()));
    } catch { /* the double has gone; update() loads the lists when it is back */ }
    isLoading = false;
    load(); // returns at once unless something has changed meanwhile
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
      if (isShown && id && !right.contains(document.activeElement)) right.focus({ preventScroll: true });
      isShown = true;
    },
    /** @param {number} by */
    move(by) {
      const all = lists.flatMap((list) => list.paths());
      const index = all.indexOf(location.pathname);
      const next = all[index < 0 ? 0 : Math.min(all.length - 1, Math.max(0, index + by))];
      if (next) navigate(next);
      for (const list of lists) list.focus();
    },
  };
}

/** @param {string | undefined} kind @param {string} name @returns {Detail | null} */
function detailOf(kind, name) {
  if (kind === "new") return own(KINDS, name)?.newDetail() ?? null;
  return own(KINDS, kind ?? "")?.detail(name) ?? null;
}

/** @param {Kind} kind */
function listOf(kind) {
  const { title, noun, list, field, key, none, rowText } = KINDS[kind];
  const rows = table({
    label: title,
    columns: ["Name", kind === "tool" ? "Id" : "Protocol"],
    height: 34,
    className: "named",
    key: (item) => detailPath(kind, item),
    row: (item) => {
      const name = h("a", { href: detailPath(kind, item) });
      const more = h("span", { class: "number" });
      return Object.assign(h("div", null, h("span", null, name), more), { update: (/** @type {any} */ latest) => {
        setName(name, latest.Name);
        setText(more, rowText(latest));
      } });
    },
  });
  const empty = h("p", { class: "none", hidden: true }, none);
  const heading = h("h2", null, title);
  let all = /** @type {any[]} */ ([]);
  let items = all;
  let word = "";

  function draw() {
    items = all.filter((item) => `${item.Name} ${rowText(item)}`.toLowerCase().includes(word));
    setText(heading, all.length > 9 ? `${title} (${all.length})` : title);
    rows.show(items);
    rows.element.hidden = !items.length;
    empty.hidden = items.length > 0;
    setText(empty, all.length ? `No ${noun}s match.` : none);
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
    mark: (id) => rows.mark(id.startsWith(`${kind}/`) ? detailPath(kind, { [key]: id.slice(kind.length + 1) }) : null),
    focus: rows.focus,
    paths: () => items.map((item) => detailPath(kind, item)),
  };
}
