// The double's state, which its events keep up to date, and the listeners that draw it.

import { ApiError, ask, events, open } from "./api.js";

const LONGEST_WAIT_MS = 1500;
const CALM_MS = 50; // between two drawings
const BUSY_MS = 250; // the same above BUSY changes a second, when drawing takes most of the page's time
const BUSY = 30;
const MOST_REQUESTS = 1000; // as many as the double's journal keeps by default

/** @typedef {"connecting" | "live" | "away" | "refused"} Status */

export const double = {
  status: /** @type {Status} */ ("connecting"),
  connection: /** @type {any} */ (null),
  clock: /** @type {any} */ (null),
  sessions: /** @type {any[]} */ ([]),
  ended: /** @type {any[]} */ ([]),
  requests: /** @type {any[]} */ ([]),
  faults: /** @type {any[]} */ ([]),
  ready: false,
  loads: 0, // how often the whole state was loaded
  eventCounts: /** @type {Record<string, number>} */ ({}), // events of kinds that have no data here
};

/** @type {Set<() => void>} */
const listeners = new Set();
let changes = 0; // since the last drawing
let pauseMs = CALM_MS;
let drawnAt = 0;
let clockRead = 0;

/** Call a function after changes: at once after the first one, then at most every CALM_MS or BUSY_MS.
 * @param {() => void} listener */
export function onChange(listener) {
  listeners.add(listener);
}

function scheduleDraw() {
  changes += 1;
  // not requestAnimationFrame, which pauses in background tabs
  if (changes === 1) setTimeout(draw, Math.max(0, drawnAt + pauseMs - performance.now()));
}

function draw() {
  const elapsed = performance.now() - drawnAt;
  pauseMs = changes * 1000 > BUSY * elapsed ? BUSY_MS : CALM_MS;
  changes = 0;
  drawnAt += elapsed;
  for (const listener of listeners) listener();
}

/** Return the platform's time, extrapolated from when its clock was last read. @returns {Date} */
export function now() {
  if (!double.clock) return new Date();
  const elapsedMs = double.clock.frozen ? 0 : performance.now() - clockRead;
  return new Date(Date.parse(double.clock.now) + elapsedMs);
}

/** @param {any} clock */
function setClock(clock) {
  double.clock = clock;
  clockRead = performance.now();
}

const readers = {
  clock: async () => setClock(await ask("/clock")),
  faults: async () => { double.faults = (await ask("/faults")).faults; },
  requests: async () => { double.requests = (await ask("/journal")).entries.slice(-MOST_REQUESTS); },
  async sessions() {
    const listing = await ask("/sessions");
    double.sessions = listing.sessions;
    double.ended = listing.ended;
  },
};

/** @type {Map<string, Promise<void>>} */
const running = new Map();
/** @type {Map<string, Promise<void>>} */
const queued = new Map();

/** Read a part of the state again. A call during a read waits for another read, because the running
 * one may have started before the change that the caller wants to see.
 * @param {keyof typeof readers} part @returns {Promise<void>} */
export function refresh(part) {
  const current = running.get(part);
  if (current && !queued.has(part)) {
    queued.set(part, current.catch(() => undefined).then(() => {
      queued.delete(part);
      return refresh(part);
    }));
  }
  if (current) return /** @type {Promise<void>} */ (queued.get(part));
  const reading = readers[part]().then(scheduleDraw).finally(() => running.delete(part));
  running.set(part, reading);
  return reading;
}

/** @param {Status} status */
function setStatus(status) {
  if (double.status === status) return;
  double.status = status;
  scheduleDraw();
}

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Follow the double's events while the page is open; reconnect when the stream ends. */
export async function follow() {
  let wait = 250;
  for (;;) {
    try {
      const stream = await open("/events");
      for await (const event of events(stream)) {
        await handle(event);
        wait = 250;
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return setStatus("refused");
    }
    setStatus("away");
    await pause(wait);
    wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
  }
}

/** @param {{kind: string, data: any}} event */
async function handle({ kind, data }) {
  const previous = double.status;
  if (kind === "listening" || kind === "resync" || kind === "double" || kind === "journal") await loadAll();
  else if (kind === "request") upsert(double.requests, data, "id");
  else if (kind === "clock") setClock(data);
  else if (kind === "session") putSession(data);
  else if (kind === "fault") await refresh("faults");
  else double.eventCounts[kind] = (double.eventCounts[kind] ?? 0) + 1;
  setStatus("live");
  if (previous === "live") scheduleDraw();
}

async function loadAll() {
  double.connection = await ask("/console/connection");
  await Promise.all([refresh("clock"), refresh("sessions"), refresh("faults"), refresh("requests")]);
  double.ready = true;
  double.loads += 1;
}

/** Replace an item's older version, or insert it by its key, ascending.
 * @param {any[]} items @param {any} item @param {string} key */
function upsert(items, item, key) {
  let index = items.length - 1; // searched from the end, where new items belong
  while (index >= 0 && items[index][key] > item[key]) index -= 1;
  if (index >= 0 && items[index][key] === item[key]) items[index] = item;
  else items.splice(index + 1, 0, item);
  if (items.length > MOST_REQUESTS) items.shift();
}

/** @param {any} session */
function putSession(session) {
  const isOther = (/** @type {any} */ other) => other.SessionId !== session.SessionId;
  if (session.state === "destroyed" || session.state === "asleep") {
    double.sessions = double.sessions.filter(isOther);
    double.ended = [...double.ended.filter(isOther), session];
  } else if (double.sessions.every(isOther)) {
    double.sessions = [...double.sessions, session];
    double.ended = double.ended.filter(isOther); // it may have woken
  } else double.sessions = double.sessions.map((other) => (isOther(other) ? other : session));
}

/** Return a string that changes when the whole state was loaded, or an event of these kinds came.
 * @param {...string} kinds */
export const versionOf = (...kinds) => [double.loads, ...kinds.map((kind) => double.eventCounts[kind] ?? 0)].join(" ");
