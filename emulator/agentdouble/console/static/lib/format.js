// Times, durations, sizes and counts as text.

/** Format a duration as 1:34 or 2:03:00. @param {number} seconds */
export function hms(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const tail = `${String(rest).padStart(2, "0")}`;
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/** @param {Date} date */
export const timestamp = (date) => `${date.toISOString().slice(0, 19).replace("T", " ")}Z`;

/** Return the time of day in UTC. @param {string} at an ISO time */
export const timeOfDay = (at) => new Date(at).toISOString().slice(11, 19);

/** Return how long ago something was: "12 s ago". @param {number} seconds */
export function ago(seconds) {
  const [count, unit] = seconds < 60 ? [seconds, "s"] : seconds < 3600 ? [seconds / 60, "min"]
    : seconds < 86400 ? [seconds / 3600, "h"] : [seconds / 86400, "d"];
  return `${Math.max(0, Math.floor(count))} ${unit} ago`;
}

/** @param {number | null} ms */
export const duration = (ms) => (ms === null ? "…" : ms < 10 ? `${ms.toFixed(1)} ms`
  : ms < 10000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** @param {number} bytes */
export const mebibytes = (bytes) => `${Math.round(bytes / 2 ** 20)} MiB`;

/** Return "1 session" or "2 sessions". @param {number} count @param {string} noun @param {string} [plural] */
export const pluralize = (count, noun, plural = `${noun}s`) => `${count} ${count === 1 ? noun : plural}`;

/** @param {number} bytes */
export function fileSize(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const [value, unit] = bytes < 2 ** 20 ? [bytes / 1024, "kB"] : [bytes / 2 ** 20, "MB"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
