// Elements, keyed lists, and a table that has only the rows one can see. No HTML is ever parsed.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element. Names that start with "on" are listeners, other names are attributes.
 * @param {string} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(tag, attributes, ...children) {
  const element = /** @type {any} */ (document.createElement(tag));
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child != null && child !== false).map((child) =>
    child instanceof Node ? child : String(child)));
  return element;
}

/** Set text only where it differs, so that nothing is drawn or read out for no reason.
 * @param {Element} element @param {string | number} text */
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = String(text);
}

/**
 * Show items as children, one for each key; keep the elements of keys that stay.
 * @template T
 * @param {Element} parent
 * @param {T[]} items
 * @param {(item: T) => string | number} key
 * @param {(item: T) => any} make an element, with a function "update" if it can change
 */
export function list(parent, items, key, make) {
  const before = new Map([...parent.children].map((child) => [/** @type {any} */ (child).key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const id = key(item);
    let element = /** @type {any} */ (before.get(id));
    before.delete(id);
    if (!element) {
      element = make(item);
      element.key = id;
    }
    element.update?.(item);
    if (place && element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  for (const child of before.values()) child.remove();
}

const SPARE = 6; // rows above and below what is seen

/**
 * Make a table of rows of one height, of which only those in sight are elements.
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
    /** Move the mark; return the item that has it now. @param {number} by @returns {T | undefined} */
    move(by) {
      const place = items.findIndex((item) => key(item) === current);
      const next = place < 0 ? 0 : Math.min(items.length - 1, Math.max(0, place + by));
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

/** Say something to those who listen to the page. @param {string} text */
export function say(text) {
  setText(/** @type {Element} */ (document.getElementById("said")), text);
}

/** Rows of a list of facts: names with values, without those that have none.
 * @param {Record<string, any>} facts */
export const factRows = (facts) => Object.entries(facts)
  .filter(([, value]) => value !== "" && value != null && value !== false)
  .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)));

/**
 * Show a dialog; it is removed when it closes.
 * @param {string} title @param {...Child} content
 * @returns {HTMLDialogElement}
 */
export function dialog(title, ...content) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const element = h("dialog", { "aria-labelledby": "dialog-title", onclose: () => element.remove() },
    heading, ...content);
  document.body.append(element);
  element.showModal();
  return element;
}
