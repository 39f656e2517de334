// The cells of a session as a notebook's JSON, nbformat 4.5.

/** @param {string} by @param {string} [source] */
export function cellRecord(by, source) {
  /** @type {any[]} */
  let outputs = [];
  /** @type {Map<any, string>} */
  const ids = new Map(); // of displays that may be updated
  let clears = false;
  const record = {
    by, source, language: "python3", count: /** @type {number | null} */ (null),
    outputs: () => outputs,
    /** @param {string} language @param {number | null} count */
    start(language, count) {
      record.language = language;
      record.count = count ?? null;
    },
    /** @param {string} kind @param {any} content */
    add(kind, content) {
      if (kind === "clear_output") {
        clears = content.wait;
        if (!clears) outputs = [];
        return;
      }
      if (clears) outputs = [];
      clears = false;
      const id = content.transient?.display_id;
      const made = output(kind, content, record.count);
      const last = outputs[outputs.length - 1];
      if (kind === "update_display_data") {
        for (const one of outputs) if (id && ids.get(one) === id) one.data = made.data;
      } else if (kind === "stream" && last?.output_type === "stream" && last.name === content.name) {
        last.text.push(content.text);
      } else {
        outputs.push(made);
        if (id) ids.set(made, id);
      }
    },
  };
  return record;
}

/** @param {string} kind @param {any} content @param {number | null} count */
function output(kind, content, count) {
  const { data, metadata = {}, ename, evalue, traceback } = content;
  if (kind === "stream") return { output_type: "stream", name: content.name, text: [content.text] };
  if (kind === "error") return { output_type: "error", ename, evalue, traceback };
  if (kind === "execute_result") return { output_type: kind, execution_count: count, data, metadata };
  return { output_type: "display_data", data, metadata };
}

/** @param {ReturnType<typeof cellRecord>[]} records */
export function notebookOf(records) {
  return {
    cells: records.map((one, index) => ({
      cell_type: "code", id: `cell-${index + 1}`, execution_count: one.count, metadata: {},
      source: one.source ?? `# run by ${one.by}: the double sends only what it wrote`,
      outputs: one.outputs().map((made) => (made.output_type === "stream" ? { ...made, text: made.text.join("") } : made)),
    })),
    metadata: {
      kernelspec: { display_name: "Python 3", language: "python", name: "python3" },
      language_info: { name: "python" },
    },
    nbformat: 4, nbformat_minor: 5,
  };
}
