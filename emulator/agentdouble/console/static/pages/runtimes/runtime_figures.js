// The figures of a runtime, read from the double's metrics again and again while they are shown.

import { open } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { plot } from "../../lib/plot.js";

const PREFIX = "agentdouble_runtime_";
const MIB = 2 ** 20;

/** @typedef {{name: string, labels: Record<string, string>, value: number}} Sample */

/** The samples of a runtime. @param {string} text in the format of Prometheus @param {string} runtime */
export function samplesOf(text, runtime) {
  /** @type {Sample[]} */
  const found = [];
  for (const line of text.split("\n")) {
    const [, name, inner, value] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? [];
    if (!name?.startsWith(PREFIX)) continue;
    const labels = Object.fromEntries([...inner.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((one) => [one[1], one[2]]));
    if (labels.runtime === runtime) found.push({ name: name.slice(PREFIX.length), labels, value: Number(value) });
  }
  return found;
}

/** @param {number} value */
const short = (value) => (value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1));

/** @param {string} runtime */
export function runtimeFigures(runtime) {
  const plots = {
    requests: plot("Requests a second", short),
    latency: plot("Mean duration", (ms) => `${short(ms)} ms`),
    errors: plot("Failed a second", short),
    instances: plot("Instances", short),
    memory: plot("Memory", (bytes) => `${short(bytes / MIB)} MiB`),
    cpu: plot("Processor", (share) => `${short(share * 100)} %`),
  };
  let before = /** @type {any} */ (null);

  /** @param {Sample[]} samples */
  function show(samples) {
    const sum = (/** @type {string} */ name, fits = (/** @type {any} */ _labels) => true) => samples
      .filter((one) => one.name === name && fits(one.labels)).reduce((all, one) => all + one.value, 0);
    const now = { at: performance.now() / 1000, requests: sum("requests_total"), errors: sum("errors_total"),
      cpu: sum("cpu_seconds_total"), spent: sum("request_duration_seconds_sum") };
    plots.instances.add(sum("instances"));
    plots.memory.add(sum("memory_bytes"));
    if (before) {
      const passed = now.at - before.at;
      const requests = Math.max(0, now.requests - before.requests);
      plots.requests.add(requests / passed);
      plots.errors.add(Math.max(0, now.errors - before.errors) / passed);
      plots.cpu.add(Math.max(0, now.cpu - before.cpu) / passed);
      plots.latency.add(requests ? Math.max(0, now.spent - before.spent) * 1000 / requests : 0);
    }
    before = now;
  }

  return {
    element: h("section", { class: "panel", "aria-label": "Figures" }, h("h2", null, "Figures of the last two minutes"),
      h("div", { class: "plots" }, Object.values(plots).map((one) => one.element))),
    async read() {
      show(samplesOf(await (await open("/metrics")).text(), runtime));
    },
  };
}
