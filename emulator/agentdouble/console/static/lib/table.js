// A table with many rows; only the rows in view are elements.

import { h, list } from "./dom.js";

const SPARE = 6; // rows drawn above and below the visible ones

/**
 * Create a table whose rows have the same height.
 * @template T
 * @param {{label: string, columns: string[], height: number, className: string,
 *          key: (item: T) => string | number, row: (item: T) => any}} how
 */
export function table({ label, columns, height, className, key, row }) {
  const body = h("div", { role: "rowgroup", class: "rows" });
  const head = h("div", { role: "row", class: "row head" },
    columns.map((name) => h("span", { role: "columnheader" }, name)));
  const inner = h("div", { role: "table", "aria-label": label, class: `table ${className}` },
    h("div", { role: "rowgroup" }, head), body);
  const element = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, inner);
  /** @type {T[]} */
  let items = [];
  let current = /** @type {string | number | null} */ (null);
  const draw = () => {
    const first = Math.max(0, Math.floor((element.scrollTop - height) / height) - SPARE);
    const count = Math.ceil((element.clientHeight || 600) / height) + 2 * SPARE;
    const visible = items.slice(first, first + count);
    body.style.height = `${items.length * height}px`;
    body.style.paddingTop = `${first * height}px`;
    list(body, visible, key, (item) => {
      const element = row(item);
      element.setAttribute("role", "row");
      element.classList.add("row");
      for (const cell of element.children) cell.setAttribute("role", "cell");
      return element;
    });
    visible.forEach((item, index) => {
      const drawn = body.children[index];
      drawn.setAttribute("aria-rowindex", String(first + index + 2));
      drawn.classList.toggle("current", key(item) === current);
    });
  };
  element.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(element);
  return {
    element,
    /** @param {T[]} newItems */
    show(newItems) {
      items = newItems;
      inner.setAttribute("aria-rowcount", String(items.length + 1));
      draw();
    },
    /** @param {string | number | null} id */
    mark(id) {
      current = id;
      draw();
    },
    /** Give the focus to the link of the marked row. */
    focus() {
      /** @type {HTMLElement | null} */ (body.querySelector(".current a"))?.focus({ preventScroll: true });
    },
    /** Move the mark by a number of rows; return the newly marked item. @param {number} by @returns {T | undefined} */
    move(by) {
      const index = items.findIndex((item) => key(item) === current);
      const next = index < 0 ? 0 : Math.min(items.length - 1, Math.max(0, index + by));
      if (!items[next]) return undefined;
      current = key(items[next]);
      const top = (next + 1) * height;
      if (top - height < element.scrollTop) element.scrollTop = top - height;
      if (top + height > element.scrollTop + element.clientHeight) {
        element.scrollTop = top + height - element.clientHeight;
      }
      draw();
      return items[next];
    },
  };
}
