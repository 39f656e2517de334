// One runtime: its instances, its versions, how far it scales, what it prints and what it uses.

import { navigate } from "../../lib/address.js";
import { act, ask, remove } from "../../lib/api.js";
import { attempt, confirmed, copyButton } from "../../lib/bar.js";
import { dialog, factRows, h, list, say, setText } from "../../lib/dom.js";
import { double, newsOf } from "../../lib/live.js";
import { mebibytes, span, stamp } from "../../lib/words.js";
import { runtimeFigures } from "./runtime_figures.js";
import { programOf, runtimeForm } from "./runtime_form.js";
import { runtimeLogs } from "./runtime_logs.js";
import { lightOf } from "./runtimes.js";

const EVERY_S = 2;
const PASSES = /^(Creating|Updating|Releasing)$/;

/** @param {string} name */
export function runtime(name) {
  const own = `/runtimes/${encodeURIComponent(name)}`;
  const status = h("span", { class: "tag" });
  const address = h("code");
  const why = h("p", { class: "bad", role: "status" });
  const facts = h("dl", { class: "facts" });
  const instances = h("ul", { class: "choices" });
  const asleep = h("p", { class: "none" });
  const versions = h("ul", { class: "choices" });
  const logs = runtimeLogs(name);
  const figures = runtimeFigures(name);
  const change = (/** @type {() => Promise<any>} */ what) => attempt(async () => {
    await what();
    await load();
  });
  const update = (/** @type {any} */ fields) => act("UpdateRuntime", { RuntimeId: shown.id, ...fields });
  const start = h("button", { onclick: () => change(() => update({ MinInstance: 1, ReleaseEnable: true })) }, "Start");
  const stop = h("button", { onclick: () => asks("Stop", "Its instances end, and none is kept; a new request starts one again.",
    () => change(sleep)) }, "Stop");
  const actions = h("p", { class: "buttons" }, start, stop,
    h("button", { onclick: () => attempt(async () => runtimeForm("Make a new version", await read(), async (fields) => {
      await update(fields);
      await load();
    })) }, "Change"),
    copyButton("Copy the address", () => `${double.connection.url}/runtimes/${encodeURIComponent(name)}`),
    h("button", { onclick: () => attempt(showKey) }, "Show the key"),
    h("button", { class: "danger", onclick: () => asks("Delete", "Its instances end, and its versions and logs go with it.", async () => {
      await act("DeleteRuntime", { RuntimeId: shown.id });
      say(`${name} is deleted.`);
      navigate("/runtimes");
    }) }, "Delete"));
  const body = h("div", { class: "stack" },
    h("div", { class: "beside" },
      h("section", { class: "panel", "aria-label": "Instances" }, h("h2", null, "Instances"), instances, asleep),
      h("section", { class: "panel", "aria-label": "Versions" }, h("h2", null, "Versions"), versions)),
    figures.element, logs.element);
  const element = h("div", { class: "stack session" },
    h("section", { class: "panel" }, h("div", { class: "title" }, h("h1", null, name), status, address), facts, why, actions), body);
  actions.hidden = body.hidden = true; // until it is read
  let shown = /** @type {any} */ (null);
  let closed = false;
  let least = 0;
  let logged = 0;
  let seen = "";
  let drawn = "";
  let ticks = 0;

  const end = (/** @type {string} */ instance) => remove(`${own}/instances/${encodeURIComponent(instance)}`);

  /** Keep no instance, and end those there are; a version that keeps none comes into force first. */
  async function sleep() {
    if (least) await update({ MinInstance: 0, ReleaseEnable: true });
    do shown = await ask(own); while (PASSES.test(shown.status) && await pause());
    for (const one of shown.instances) if (one.state === "ready") await end(one.name);
  }

  const read = () => act("GetRuntime", { RuntimeId: shown.id });

  async function showKey() {
    const key = (await read()).AuthorizerConfiguration?.KeyAuth?.ApiKey;
    const box = dialog(`The key of ${name}`,
      key ? h("pre", { role: "group", tabindex: "0", "aria-label": "Key" }, key) : h("p", null, "It asks for no key."),
      h("p", { class: "buttons" }, key && copyButton("Copy", () => key), h("button", { onclick: () => box.close(), autofocus: true }, "Close")));
  }

  async function load() {
    try { // the list, because to ask for one that has gone is an error in the browser's console
      shown = (await ask("/runtimes")).runtimes.find((/** @type {any} */ one) => one.name === name);
    } catch {
      return; // the double does not answer; the bar says so
    }
    if (closed) return;
    actions.hidden = body.hidden = address.hidden = facts.hidden = !shown;
    setText(status, shown?.status ?? "unknown");
    status.dataset.state = lightOf(shown?.status ?? "");
    if (!shown) {
      logs.close();
      setText(why, "The double has no such runtime.");
      return;
    }
    if (logged !== double.reads) {
      logged = double.reads;
      logs.restart();
      figures.read().catch(() => undefined);
    }
    drawInstances();
    if (drawn !== `${newsOf("runtime")} ${shown.version} ${shown.status}`) await readVersions();
  }

  function drawButtons() {
    start.disabled = least > 0;
    stop.disabled = !least && !shown.instances.length;
  }

  function drawInstances() {
    drawButtons();
    setText(address, `${double.connection.url}/runtimes/${name}`);
    setText(why, shown.status_reason);
    logs.of(shown.logs_of);
    asleep.hidden = shown.instances.length > 0;
    setText(asleep, shown.status === "Error" ? "None runs." : "It sleeps: the next request starts an instance.");
    list(instances, shown.instances, (one) => /** @type {any} */ (one).name, (one) => {
      const state = h("span", { class: "tag" });
      const rest = h("span", { class: "number" });
      const row = h("li", null, h("div", { class: "title" }, h("strong", null, one.name), state,
        h("button", { "aria-label": `End ${one.name}`, onclick: () => asks("End an instance of", "The requests that it has now fail.",
          () => change(() => end(one.name))) }, "End")), rest);
      row.update = (/** @type {any} */ next) => {
        setText(state, next.state);
        state.dataset.state = next.state === "ready" ? "ok" : "bad";
        setText(rest, `version ${next.version}, ${next.in_flight} now, ${next.served} served, ${mebibytes(next.memory_bytes)}, `
          + `${next.cpu_s.toFixed(1)} s of processor, pid ${next.pid ?? "–"}, for ${span(next.age_s)}`);
      };
      return row;
    });
  }

  async function readVersions() {
    const news = `${newsOf("runtime")} ${shown.version} ${shown.status}`;
    const [whole, found] = await Promise.all([read(), act("ListRuntimeVersions", { RuntimeId: shown.id, MaxResults: 100 })]);
    drawn = news;
    facts.replaceChildren(...factRows(factsOf(whole)));
    least = whole.MinInstance;
    drawButtons();
    versions.replaceChildren(...found.AgentKitRuntimeVersions.reverse().map((/** @type {any} */ one) => {
      const serves = one.VersionNumber === whole.CurrentVersionNumber;
      return h("li", null, h("div", { class: "title" }, h("strong", null, `version ${one.VersionNumber}`),
        h("span", { class: "tag", "data-state": serves ? "ok" : "" }, serves ? "in force, all requests" : "no requests"),
        h("small", null, stamp(new Date(one.CreatedAt))),
        !serves && h("button", { onclick: () => change(() => act("ReleaseRuntime", { RuntimeId: shown.id, VersionNumber: one.VersionNumber })),
          "aria-label": `Release version ${one.VersionNumber}` }, "Release")),
      h("code", null, runs(one)));
    }));
  }

  return {
    element,
    close() {
      closed = true;
      logs.close();
    },
    update() {
      const news = newsOf("runtime");
      if (double.status !== "live" || news === seen) return;
      seen = news;
      load();
    },
    tick() {
      ticks += 1;
      if (double.status !== "live" || document.hidden || !shown) return;
      if (ticks % EVERY_S === 0) load();
      if (ticks % EVERY_S === 1) figures.read().catch(() => undefined);
    },
  };
}

/** @returns {Promise<boolean>} */
const pause = () => new Promise((resolve) => setTimeout(() => resolve(true), 200));

/** @param {string} what @param {string} then @param {() => any} go */
const asks = (what, then, go) => confirmed(`${what} this runtime?`, then, what.split(" ")[0], go);

/** What a version runs. @param {any} version */
function runs(version) {
  const { command, application, directory } = programOf(version.ArtifactUrl);
  return `${command ?? application ?? ""} in ${directory}`;
}

/** @param {any} whole */
function factsOf(whole) {
  const by = whole.AuthorizerConfiguration ?? {};
  return {
    Id: whole.RuntimeId, For: whole.Description, Runs: runs(whole),
    Instances: `${whole.MinInstance} to ${whole.MaxInstance}, ${whole.MaxConcurrency} requests each`,
    Memory: whole.MemoryMb && `at most ${whole.MemoryMb} MB each`,
    "Open to": by.KeyAuth ? "whoever has its key" : by.CustomJwtAuthorizer ? "whoever has a token" : "everybody",
  };
}
