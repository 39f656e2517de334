// The data plane of a session: its files. The double adds the session's token.

import { ApiError, ask } from "./api.js";

/** Ask for the data of an answer; what failed is an error with the double's words.
 * @param {string} path the session's @param {string} route @param {any} [body] @returns {Promise<any>} */
export async function plane(path, route, body) {
  const answer = await ask(`${path}${route}`, body === undefined ? {} : { method: "POST", body });
  if (answer.success) return answer.data;
  throw new ApiError(200, answer.message);
}
