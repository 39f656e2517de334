// The variables of a session's Python kernel; to read them is no use of the session.

import { ApiError, ask } from "../../lib/api.js";
import { h, list, setText } from "../../lib/dom.js";

const WHY = { busy: "The kernel is busy.", none: "No kernel has started yet.", silent: "The kernel does not answer." };

/** @param {string} path the session's */
export function variableTable(path) {
  const rows = h("dl", { class: "variables" });
  const note = h("p", { class: "none" });

  async function read() {
    try {
      const { variables, state, left_out } = await ask(`${path}/variables`);
      if (state === "busy") return;
      list(rows, variables, (variable) => `${variable.name} ${variable.type} ${variable.repr}`, (variable) => h("div", null,
        h("dt", null, variable.name, " ", h("small", null, variable.type)), h("dd", null, h("code", null, variable.repr))));
      setText(note, variables.length ? (left_out ? `and ${left_out} more` : "")
        : /** @type {Record<string, string>} */ (WHY)[state] ?? "No variable is set yet.");
    } catch (error) {
      if (error instanceof ApiError) setText(note, error.message);
    }
  }

  return { element: h("div", null, rows, note), read };
}
