// Addresses of the console's pages.

/** Go to an address; main.js shows what is there. @param {string} path */
export function navigate(path) {
  if (path !== location.pathname) history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** @param {any} session */
export const sessionPath = (session) => `/sessions/${encodeURIComponent(session.SessionId)}`;
