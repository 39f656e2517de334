// The addresses of the console's pages.

/** Go to an address; main.js shows its page. @param {string} path */
export function navigate(path) {
  if (path !== location.pathname) history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** Return the segments after the page's own: "app" and "echo" for "/agents/app/echo". */
export const pathSegments = () => location.pathname.split("/").slice(2).map(decoded);

/** Decode a segment, which may be malformed: anyone can write an address. @param {string} text */
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Join segments to an address. @param {...string} segments */
export const pathOf = (...segments) => `/${segments.map(encodeURIComponent).join("/")}`;

/** @param {any} session */
export const sessionPath = (session) => `/sessions/${encodeURIComponent(session.SessionId)}`;
