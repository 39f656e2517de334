// What a terminal sends for a key.

/** @type {Record<string, string>} */
const NAMED = {
  Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", Insert: "\x1b[2~", Delete: "\x1b[3~",
  PageUp: "\x1b[5~", PageDown: "\x1b[6~", F1: "\x1bOP", F2: "\x1bOQ", F3: "\x1bOR", F4: "\x1bOS", F5: "\x1b[15~",
  F6: "\x1b[17~", F7: "\x1b[18~", F8: "\x1b[19~", F9: "\x1b[20~", F10: "\x1b[21~", F11: "\x1b[23~", F12: "\x1b[24~",
};
/** @type {Record<string, string>} */
const MOVING = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };

/** The bytes of a key; null if the browser is to do what it does with it.
 * @param {KeyboardEvent} event @param {boolean} application whether a program asked for its own arrow keys
 * @returns {string | null} */
export function bytesOf(event, application) {
  const { key, ctrlKey, altKey, metaKey, shiftKey } = event;
  if (metaKey || (ctrlKey && shiftKey)) return null; // the browser's own, as Ctrl+Shift+C
  if (MOVING[key]) {
    const held = 1 + (shiftKey ? 1 : 0) + (altKey ? 2 : 0) + (ctrlKey ? 4 : 0);
    return held > 1 ? `\x1b[1;${held}${MOVING[key]}` : `\x1b${application ? "O" : "["}${MOVING[key]}`;
  }
  const plain = NAMED[key] ?? (ctrlKey ? control(key) : [...key].length === 1 ? key : null);
  if (plain === null) return null;
  return altKey ? `\x1b${plain}` : plain;
}

/** The control character of a key; Ctrl+V is left for pasting. @param {string} key */
function control(key) {
  if (key.toLowerCase() === "v") return null;
  if (/^[a-z]$/i.test(key)) return String.fromCharCode(key.toUpperCase().charCodeAt(0) - 64);
  return /** @type {Record<string, string>} */ ({ " ": "\0", "@": "\0", "[": "\x1b", "\\": "\x1c", "]": "\x1d", "_": "\x1f" })[key] ?? null;
}
