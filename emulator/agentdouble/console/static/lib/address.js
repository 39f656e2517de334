// Addresses of the console's pages.

/** Go to an address; main.js shows what is there. @param {string} path */
export function navigate(path) {
  if (path !== location.pathname) history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** The parts of the address below its page: "/agents/app/echo" has "app" and "echo". */
export const parts = () => location.pathname.split("/").slice(2).map(decoded);

/** @param {string} text of an address, which anybody can have written */
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** An address of these parts. @param {...string} names */
export const pathOf = (...names) => `/${names.map(encodeURIComponent).join("/")}`;

/** @param {any} session */
export const sessionPath = (session) => `/sessions/${encodeURIComponent(session.SessionId)}`;
