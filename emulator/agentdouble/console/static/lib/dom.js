// Elements and keyed lists. Nothing here parses HTML, so texts cannot act.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Create an element. Names that start with "on" are listeners, other names are attributes.
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

/** Set an element's text if it differs, to avoid needless drawing and announcements.
 * @param {Element} element @param {string | number} text */
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = String(text);
}

const END = 8; // characters at the end of a name that are always shown

/** Show a name, whose middle is cut where there is too little room: its end tells it apart.
 * @param {HTMLElement} element @param {string} name */
export function setName(element, name) {
  if (element.textContent === name) return;
  const isLong = name.length > 2 * END;
  element.replaceChildren(...(isLong ? [h("span", null, name.slice(0, -END)), h("span", null, name.slice(-END))] : [name]));
  element.classList.toggle("name", isLong);
  for (const attribute of ["title", "aria-label"]) {
    if (isLong) element.setAttribute(attribute, name);
    else element.removeAttribute(attribute);
  }
}

/** A link with a name. @param {string} href @param {string} name */
export function namedLink(href, name) {
  const link = h("a", { href });
  setName(link, name);
  return link;
}

/**
 * Show items as children, one for each key. Keys that were shown before keep their elements.
 * @template T
 * @param {Element} parent
 * @param {T[]} items
 * @param {(item: T) => string | number} key
 * @param {(item: T) => any} make returns an element, with a function "update" if it can change
 */
export function list(parent, items, key, make) {
  const previous = new Map([...parent.children].map((child) => [/** @type {any} */ (child).key, child]));
  let next = parent.firstElementChild;
  for (const item of items) {
    const id = key(item);
    let element = /** @type {any} */ (previous.get(id));
    previous.delete(id);
    if (!element) {
      element = make(item);
      element.key = id;
    }
    element.update?.(item);
    if (next && element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
  for (const child of previous.values()) child.remove();
}

/** Announce a text to screen readers. @param {string} text */
export function announce(text) {
  setText(/** @type {Element} */ (document.getElementById("announcements")), text);
}

/** Return rows for a description list of facts, without those that have no value.
 * @param {Record<string, any>} facts */
export const factRows = (facts) => Object.entries(facts)
  .filter(([, value]) => value !== "" && value != null && value !== false)
  .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)));

/** A description list of facts. @param {Record<string, any>} facts */
export const factList = (facts) => h("dl", { class: "facts" }, factRows(facts));
