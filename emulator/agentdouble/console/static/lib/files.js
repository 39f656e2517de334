// Files as the browser saves and reads them.

/** Save data to a file of the user's; it is never shown as a page. @param {Blob} blob @param {string} name */
export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000); // the browser has begun to read it by then
}

/** Call "take" with files that are dropped on an element, and "text", if there is one, with dropped text.
 * @param {HTMLElement} element @param {(files: File[]) => any} take @param {(text: string) => any} [text] */
export function dropZone(element, take, text) {
  const mark = (/** @type {DragEvent} */ event) => {
    if (!text && !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    element.classList.toggle("over", event.type === "dragover");
    if (event.type !== "drop") return;
    const files = [...event.dataTransfer?.files ?? []];
    if (files.length) take(files);
    else text?.(event.dataTransfer?.getData("text") ?? "");
  };
  for (const kind of /** @type {const} */ (["dragover", "dragleave", "drop"])) element.addEventListener(kind, mark);
}

/** @param {Blob} blob @returns {Promise<string>} */
export function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(/** @type {string} */ (reader.result).replace(/^[^,]*,?/, ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** @param {number} bytes */
export function sized(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const [value, unit] = bytes < 2 ** 20 ? [bytes / 1024, "kB"] : [bytes / 2 ** 20, "MB"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
