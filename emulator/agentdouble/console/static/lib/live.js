// What the page knows of the double, kept up to date, and who is told when it changes.

import { ApiError, ask, events, open } from "./api.js";

const LONGEST_WAIT_MS = 1500;
const CALM_MS = 50; // between two drawings
const BUSY_MS = 250; // drawing costs most of the page's time when much happens
const BUSY = 30; // changes a second
const KEPT = 1000; // requests, as many as the double's journal keeps by default

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
  reads: 0, // how often all of it was read anew
  news: /** @type {Record<string, number>} */ ({}), // how many events of other kinds have come
};

/** @type {Set<() => void>} */
const listeners = new Set();
let changes = 0; // since the last drawing
let pauseMs = CALM_MS;
let drawnAt = 0;
let clockRead = 0;

/** Call a function after each change: at once, and then with pauses, the longer ones when much happens.
 * @param {() => void} listener */
export function watch(listener) {
  listeners.add(listener);
}

function changed() {
  changes += 1;
  // no frame, which a tab in the background does not have
  if (changes === 1) setTimeout(draw, Math.max(0, drawnAt + pauseMs - performance.now()));
}

function draw() {
  const since = performance.now() - drawnAt;
  pauseMs = changes * 1000 > BUSY * since ? BUSY_MS : CALM_MS;
  changes = 0;
  drawnAt += since;
  for (const listener of listeners) listener();
}

/** The platform's time now, which goes on between two looks. @returns {Date} */
export function now() {
  if (!double.clock) return new Date();
  const passed = double.clock.frozen ? 0 : performance.now() - clockRead;
  return new Date(Date.parse(double.clock.now) + passed);
}

/** @param {any} clock */
function setClock(clock) {
  double.clock = clock;
  clockRead = performance.now();
}

const readers = {
  clock: async () => setClock(await ask("/clock")),
  faults: async () => { double.faults = (await ask("/faults")).faults; },
  requests: async () => { double.requests = (await ask("/journal")).entries.slice(-KEPT); },
  async sessions() {
    const listing = await ask("/sessions");
    double.sessions = listing.sessions;
    double.ended = listing.ended;
  },
};

/** @type {Map<string, Promise<void>>} */
const running = new Map();
/** @type {Map<string, Promise<void>>} */
const next = new Map();

/** Read a part again. Calls meanwhile wait for the next reading, because the running one may have begun
 * before the change that they wait for. @param {keyof typeof readers} part @returns {Promise<void>} */
export function read(part) {
  const first = running.get(part);
  if (first && !next.has(part)) {
    next.set(part, first.catch(() => undefined).then(() => {
      next.delete(part);
      return read(part);
    }));
  }
  if (first) return /** @type {Promise<void>} */ (next.get(part));
  const reading = readers[part]().then(changed).finally(() => running.delete(part));
  running.set(part, reading);
  return reading;
}

/** @param {Status} status */
function become(status) {
  if (double.status === status) return;
  double.status = status;
  changed();
}

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Follow the double for as long as the page is open; after a break, find it again. */
export async function follow() {
  let wait = 250;
  for (;;) {
    try {
      const stream = await open("/events");
      for await (const event of events(stream)) {
        await take(event);
        wait = 250;
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return become("refused");
    }
    become("away");
    await pause(wait);
    wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
  }
}

/** @param {{kind: string, data: any}} event */
async function take({ kind, data }) {
  const before = double.status;
  if (kind === "listening" || kind === "resync" || kind === "double" || kind === "journal") await readAll();
  else if (kind === "request") put(double.requests, data, "id");
  else if (kind === "clock") setClock(data);
  else if (kind === "session") putSession(data);
  else if (kind === "fault") await read("faults");
  else double.news[kind] = (double.news[kind] ?? 0) + 1;
  become("live");
  if (before === "live") changed();
}

async function readAll() {
  double.connection = await ask("/console/connection");
  await Promise.all([read("clock"), read("sessions"), read("faults"), read("requests")]);
  double.ready = true;
  double.reads += 1;
}

/** Put an item in the place of its older version, or at the end. @param {any[]} items @param {any} item
 * @param {string} key */
function put(items, item, key) {
  let place = items.length - 1;
  while (place >= 0 && items[place][key] > item[key]) place -= 1;
  if (place >= 0 && items[place][key] === item[key]) items[place] = item;
  else items.splice(place + 1, 0, item);
  if (items.length > KEPT) items.shift();
}

/** @param {any} session */
function putSession(session) {
  const isOther = (/** @type {any} */ other) => other.SessionId !== session.SessionId;
  if (session.state === "destroyed") {
    double.sessions = double.sessions.filter(isOther);
    double.ended = [...double.ended.filter(isOther), session];
  } else if (double.sessions.every(isOther)) double.sessions = [...double.sessions, session];
  else double.sessions = double.sessions.map((other) => (isOther(other) ? other : session));
}

/** What differs as soon as all was read anew, or something of these kinds has happened.
 * @param {...string} kinds */
export const newsOf = (...kinds) => [double.reads, ...kinds.map((kind) => double.news[kind] ?? 0)].join(" ");
