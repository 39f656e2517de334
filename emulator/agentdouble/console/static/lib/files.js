// Files of the browser: saving, dropping and encoding.

/** Save data as a download, which the browser never shows as a page. @param {Blob} blob @param {string} name */
export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000); // the browser has started to read it by then
}

/** Call onFiles with files that are dropped on an element, and onText, if given, with dropped text.
 * @param {HTMLElement} element @param {(files: File[]) => any} onFiles @param {(text: string) => any} [onText] */
export function dropZone(element, onFiles, onText) {
  const handle = (/** @type {DragEvent} */ event) => {
    if (!onText && !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    element.classList.toggle("over", event.type === "dragover");
    if (event.type !== "drop") return;
    const files = [...event.dataTransfer?.files ?? []];
    if (files.length) onFiles(files);
    else onText?.(event.dataTransfer?.getData("text") ?? "");
  };
  for (const kind of /** @type {const} */ (["dragover", "dragleave", "drop"])) element.addEventListener(kind, handle);
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
