// Tabs with an address each. Arrow keys move the focus; Enter or a click shows a panel.

import { navigate } from "./address.js";
import { h } from "./dom.js";

/** A panel is created when it is first shown.
 * @typedef {{element: Element, show?: () => void, update?: () => void, close?: () => void}} Panel
 * @typedef {{path: string, name: string, load: () => Promise<Panel>}} Tab */

/** A placeholder for a panel whose module failed to load. @param {unknown} error @returns {Panel} */
function unavailable(error) {
  console.error(error);
  return { element: h("p", { class: "none" }, "This part of the page could not be loaded. Reload the page.") };
}

/** @param {string} label @param {string} base the address of the first tab @param {Tab[]} tabs */
export function tabs(label, base, tabs) {
  /** @type {Map<Tab, Panel>} */
  const panels = new Map();
  let current = tabs[0];
  let closed = false;
  const buttons = tabs.map((tab) => h("button", { role: "tab", id: `tab-${tab.path}`, "aria-controls": "panel",
    onclick: () => navigate(tab.path ? `${base}/${tab.path}` : base) }, tab.name));
  const row = h("div", { role: "tablist", "aria-label": label, class: "tabs", onkeydown: move }, buttons);
  const panel = h("div", { role: "tabpanel", id: "panel", class: "tabpanel" });

  /** @param {KeyboardEvent} event */
  function move(event) {
    const index = buttons.indexOf(/** @type {Element} */ (event.target));
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -index, End: buttons.length - 1 - index }[event.key];
    if (index < 0 || by === undefined) return;
    event.preventDefault();
    buttons[(index + by + buttons.length) % buttons.length].focus();
  }

  async function draw() {
    const tab = current;
    buttons.forEach((button, index) => {
      button.setAttribute("aria-selected", String(tabs[index] === tab));
      button.setAttribute("tabindex", tabs[index] === tab ? "0" : "-1");
    });
    panel.setAttribute("aria-labelledby", `tab-${tab.path}`);
    if (!panels.has(tab)) {
      const loaded = await tab.load().catch(unavailable);
      if (closed) return loaded.close?.();
      if (!panels.has(tab)) panels.set(tab, loaded);
    }
    if (current !== tab) return undefined; // the user has chosen another tab
    const visible = /** @type {Panel} */ (panels.get(tab));
    panel.replaceChildren(visible.element);
    visible.update?.();
    return visible.show?.();
  }

  return {
    elements: [row, panel],
    /** @param {string} path */
    go(path) {
      const next = tabs.find((tab) => tab.path === path) ?? tabs[0];
      if (next === current && panel.firstChild) return;
      current = next;
      draw();
    },
    update: () => panels.get(current)?.update?.(),
    /** Empty the panel until the next "go". */
    hide: () => panel.replaceChildren(),
    close() {
      closed = true;
      for (const panel of panels.values()) panel.close?.();
    },
  };
}
