// The script that runs in the engine before any cell. All output goes through one pipe, which keeps
// its order. TOKEN marks frames in the pipe, LIMIT is a stream's limit; ``deno.py`` fills in both.

const TOKEN = "@TOKEN@";
const LIMIT = Number("@LIMIT@");
const DISPLAY = Symbol.for("Jupyter.display");
const { inspect, readFileSync } = Deno;
const writeSync = Deno.stdout.writeSync.bind(Deno.stdout);
const later = globalThis.setImmediate;
const encoder = new TextEncoder();
const pending = new Set();
const displays = new WeakSet();
let timers = [];
let started = false;
let unwritten = new Uint8Array();

// If an interrupt stops a write, the next call writes the rest first, so no frame is cut.
function write(text) {
  const bytes = encoder.encode(text);
  unwritten = unwritten.length ? joined(unwritten, bytes) : bytes;
  while (unwritten.length) unwritten = unwritten.subarray(writeSync(unwritten));
}

function joined(first, second) {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function emit(kind, payload) {
  write(`\0${TOKEN} ${kind} ${encoder.encode(payload).length}\n${payload}`);
}

// ---- what cannot be had here, in words that a cell's author can act on ----

const NOT_HERE = "JavaScript cells do not have";
const PROGRAMS = "run programs in a Python cell or in bash";
const INSTEAD = {
  net: `which ${NOT_HERE}: use a Python cell or bash`,
  run: `which ${NOT_HERE}: ${PROGRAMS}`,
  read: `which ${NOT_HERE}: they read the session's own directory and TMPDIR`,
  write: `which ${NOT_HERE}: they write to the session's own directory and TMPDIR`,
};
const ONLY = "a JavaScript cell can import built-in modules, such as 'node:fs', and files of the session, such as './a.js'";
const CHANGES = [
  [/^(.*\bRequires (\w+) access\b.*?),? run again with the --allow-\w+ flag/gm, (_, start, kind) => `${start}, ${INSTEAD[kind] ?? `which ${NOT_HERE}`}`],
  [/\S+ requires unscoped --allow-.*$/gm, (found) => `${found.split(" ")[0]} is not available in JavaScript cells: use a Python cell or bash`],
  [/npm specifiers were requested; but --no-npm is specified/g, () => `npm packages are not available: ${ONLY}`],
  [/A remote specifier was requested: ("[^"]*"), but --no-remote is specified\.?/g, (_, url) => `${url} is not available: ${ONLY}`],
  [/(Import "[^"]*") not a dependency and not in import map from "[^"]*"/g, (_, name) => `${name} is not available: ${ONLY}`],
  [/(Command failed: [^\n]*)(?=\n    at |$)/g, (_, failed) => `${failed}: JavaScript cells cannot; ${PROGRAMS}`],
];
const SCRIPT_NAMES = {
  require: "a cell is a module: write `import fs from 'fs'`, or `const fs = await import('fs')`",
  module: "a cell is a module without exports of its own: later cells see its variables",
  exports: "a cell is a module without exports of its own: later cells see its variables",
  __dirname: "a cell is a module: write `import.meta.dirname`",
  __filename: "a cell is a module: write `import.meta.filename`",
};
const UNDEFINED = /(ReferenceError: |^)(require|module|exports|__dirname|__filename) is not defined(?!:)/m;

function possible(text) {
  if (!/--(allow|no)-|Command failed: |not in import map/.test(text)) return text;
  return CHANGES.reduce((changed, [form, words]) => changed.replace(form, words), text);
}

function explained(error, text) {
  const changed = possible(text);
  if (!(error instanceof ReferenceError)) return changed;
  return changed.replace(UNDEFINED, (found, _, name) => `${found}: ${SCRIPT_NAMES[name]}`);
}

const macrotask = () => new Promise((resolve) => later(resolve));

// ---- the promises that the inspector awaits ----

// The inspector holds only a weak reference to a promise that it awaits. A promise that nothing can
// settle may be collected, but a settled one may not: nothing else refers to it while the
// inspector's reaction waits behind other microtasks, and if it is collected, the answer is
// "Promise was collected". So we mark each of these promises, and hold it from the time when it
// settles until the next cell begins. A cell's own promise is the last one that is made before the
// cell's first call, and only a hook can see it.
const awaited = new WeakSet();
const isAwaited = awaited.has.bind(awaited);
const settled = [];
let beginning = false;
let newest;
Deno[Deno.internal].core.setPromiseHooks(
  (promise) => {
    if (beginning) newest = promise;
  },
  undefined,
  undefined,
  (promise) => {
    if (isAwaited(promise)) settled[settled.length] = promise;
  },
);

// ---- the globals of cells ----

const Console = Deno[Deno.internal]?.Console;
if (Console) {
  // Deno's console also writes to the inspector's, which keeps the objects of 1000 messages alive.
  globalThis.console = new Console((text, level) => {
    const kept = possible(text.slice(0, LIMIT));
    level < 2 ? write(kept) : emit("stderr", kept);
  });
}

for (const name of ["alert", "confirm", "prompt"]) {
  globalThis[name] = () => {
    throw new Error(`${name}() is not available: nobody is there to answer`);
  };
}

for (const name of ["localStorage", "caches"]) {
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get() {
      throw new Error(`${name} is not available: write to files, which the session keeps`);
    },
  });
}

// Deno ends if execution is terminated inside a timer's callback, but not inside a microtask. So a
// timer runs its callback in a microtask, where an interrupt can stop it.
for (const name of ["setImmediate", "setInterval", "setTimeout"]) {
  const original = globalThis[name];
  const clear = globalThis[name.replace("set", "clear")];
  const wrapper = function (callback, ...rest) {
    if (typeof callback !== "function") return original(callback, ...rest);
    const values = rest.slice(name === "setImmediate" ? 0 : 1);
    const id = original(() => queueMicrotask(() => callback(...values)), rest[0]);
    timers.push(() => clear(id));
    return id;
  };
  globalThis[name] = Object.defineProperties(wrapper, Object.getOwnPropertyDescriptors(original));
}

function bundle(value) {
  return typeof value?.[DISPLAY] === "function" ? value[DISPLAY]() : { "text/plain": inspect(value) };
}

function show(data, { update = false, display_id } = {}) {
  const transient = display_id === undefined ? {} : { display_id };
  emit(update ? "update_display_data" : "display_data", JSON.stringify({ data, metadata: {}, transient }));
}

// The returned promise can be awaited, but it is never shown as the value of a cell.
function display(value, options = {}) {
  const displayed = shown(options.raw ? value : bundle(value), options);
  displays.add(displayed);
  return displayed;
}

function shown(data, options) {
  if (typeof data?.then !== "function") {
    show(data, options);
    return Promise.resolve();
  }
  const waiting = Promise.resolve(data).then((settled) => show(settled, options));
  pending.add(waiting);
  return waiting.finally(() => pending.delete(waiting));
}

const media = (type) => (strings, ...values) => ({
  [DISPLAY]: () => ({ [type]: String.raw({ raw: strings }, ...values) }),
});

function image(source) {
  const bytes = typeof source === "string" ? readFileSync(source) : source;
  const type = bytes[0] === 0xff ? "image/jpeg" : "image/png";
  return { [DISPLAY]: () => ({ [type]: bytes.toBase64() }) };
}

globalThis.display = display;
Deno.jupyter = {
  $display: DISPLAY,
  display,
  html: media("text/html"),
  image,
  md: media("text/markdown"),
  svg: media("image/svg+xml"),
};

// ---- the functions that the kernel calls ----

// Every cell begins with `await __cell()`, because only code that runs from the event loop, and not
// inside the inspector's own message, can be interrupted.
function cell() {
  if (beginning) awaited.add(newest);
  beginning = false;
  newest = undefined;
  started = true;
  return macrotask();
}

// Fail if a module lacks a name that a cell imports from it, as a static import does.
cell.named = (namespace, specifier, names) => {
  const missing = names.find((name) => !(name in namespace));
  if (missing === undefined) return namespace;
  throw new SyntaxError(`The requested module '${specifier}' does not provide an export named '${missing}'`);
};

// What ``import.meta`` is in a cell: as if the cell were a file in the session's directory.
const { pathToFileURL } = await import("node:url");
const directory = Deno.cwd();
const filename = `${directory}/cell.js`;
const url = String(pathToFileURL(filename));
cell.meta = {
  dirname: directory,
  filename,
  main: true,
  resolve: (specifier) => (/^\.{0,2}\//.test(specifier) ? new URL(specifier, url).href : specifier),
  url,
};

const kernel = {
  // Calls one of the async functions below, which all await something before they settle.
  promise(name, values) {
    const promise = kernel[name](...values);
    awaited.add(promise);
    return promise;
  },

  begin() {
    started = false;
    timers = [];
    settled.length = 0;
    beginning = true;
  },

  // Waits for a macrotask first, so that unhandled rejections are reported before the cell ends.
  async finish(value) {
    await macrotask();
    await Promise.allSettled(pending);
    return value === undefined || displays.has(value) ? null : JSON.stringify(await bundle(value));
  },

  async describe(error) {
    await macrotask();
    if (!(error instanceof Error)) {
      return { name: "Uncaught", message: inspect(error), stack: `Uncaught ${inspect(error)}`, started };
    }
    const kind = error.constructor?.name;
    const name = error.name === "Error" && kind ? kind : String(error.name);
    const message = explained(error, String(error.message));
    return { name, message, stack: explained(error, inspect(error)), started };
  },

  // An interrupted cell goes on when one of its promises settles, so clear the timers that would
  // settle them. The answer comes from the event loop, so not while code keeps the loop busy.
  async abandon() {
    for (const clear of timers) clear();
    timers = [];
    await macrotask();
    write("");
  },

  // Replaces types by blanks, so positions stay; compiles syntax that is more than types (enum).
  async stripTypes(code) {
    const { stripTypeScriptTypes } = await import("node:module");
    try {
      return { code: stripTypeScriptTypes(code, { mode: "strip" }) };
    } catch (error) {
      if (error.code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") return { error: String(error.message) };
    }
    try {
      return { code: stripTypeScriptTypes(code, { mode: "transform" }) };
    } catch (error) {
      return { error: String(error.message) };
    }
  },
};

Object.defineProperty(globalThis, "__cell", { value: cell });
Object.defineProperty(cell, "kernel", { value: kernel, configurable: true });

addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  emit("uncaught", `Uncaught (in promise) ${explained(event.reason, inspect(event.reason))}`);
});
addEventListener("error", (event) => {
  event.preventDefault();
  emit("uncaught", `Uncaught ${explained(event.error, inspect(event.error))}`);
});
setInterval(() => {}, 1e9); // an event loop without a timer would end
emit("ready", "");
