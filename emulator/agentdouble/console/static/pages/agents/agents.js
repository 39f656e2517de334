// The agents that the double serves, by protocol.

import { pathOf } from "../../lib/address.js";
import { ask } from "../../lib/api.js";
import { h, list, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";

const DEFAULT_USER = "console";

/** Return the names from list-apps, whose format depends on an unknown. @param {any} result */
const namesOf = (result) => (Array.isArray(result) ? result : result.apps.map((/** @type {any} */ app) => app.name));

export function agents() {
  const server = group("API-server mode", "Sessions with a history, state and artifacts; one request is one turn.");
  const invoked = group("Invoke", "One entrypoint, called with a prompt and the headers user_id and session_id.");
  const a2a = group("A2A", "Tasks with states and artifacts, by the agent-to-agent protocol.");
  const element = h("div", { class: "stack" }, h("h1", null, "Agents"),
    server.element, invoked.element, a2a.element);
  let shownLoad = 0;

  async function load() {
    try {
      const names = namesOf(await ask("/served/list-apps"));
      server.show(names.map((/** @type {string} */ name) => [name, "/run_sse", pathOf("agents", "app", name, DEFAULT_USER)]));
    } catch (error) {
      server.show([], /** @type {Error} */ (error).message);
    }
  }

  return {
    element,
    /** @param {number} by */
    move(by) {
      const links = [...element.querySelectorAll(".cards a")];
      const next = links.indexOf(document.activeElement) + by;
      links[Math.min(links.length - 1, Math.max(0, next))]?.focus();
    },
    update() {
      if (double.status !== "live" || shownLoad === double.loads) return;
      shownLoad = double.loads;
      const { served, a2a: applications } = double.connection;
      invoked.show(Object.entries(served).filter(([path]) => path.endsWith("/invoke"))
        .map(([path, name]) => [name, path, pathOf("agents", "invoke", name, DEFAULT_USER)]));
      a2a.show(Object.entries(applications).map(([path, name]) => [name, path, pathOf("agents", "a2a", name)]));
      load();
    },
  };
}

/** @param {string} title @param {string} about */
function group(title, about) {
  const items = h("ul", { class: "cards" });
  const none = h("p", { class: "none" });
  return {
    element: h("section", { class: "panel", "aria-label": title }, h("h2", null, title),
      h("p", { class: "hint" }, about), items, none),
    /** @param {any[][]} agents name, path and page of each @param {string} [reason] shown if there are none */
    show(agents, reason = "None is served.") {
      list(items, agents, ([, , page]) => page, ([name, path, page]) => h("li", null,
        h("a", { href: page }, h("strong", null, name), h("code", null, path))));
      none.hidden = agents.length > 0;
      setText(none, reason);
    },
  };
}
