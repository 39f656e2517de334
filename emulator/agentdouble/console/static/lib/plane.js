// The data plane of a session: its files.

import { ApiError, act, open } from "./api.js";

/** The data plane of a session: "send" returns the answer, "data" what the answer holds.
 * @param {() => {ToolId: string, SessionId: string}} idsOf */
export function dataPlane(idsOf) {
  let query = "";

  /** @param {string} route @param {any} [options] @param {Record<string, string>} [parameters] */
  async function send(route, options, parameters = {}) {
    query ||= new URL((await act("GetSession", idsOf())).Endpoint).search; // with the session's token
    return open(`/served${route}${query}&${new URLSearchParams(parameters)}`, options);
  }

  /** @param {string} route @param {any} body @returns {Promise<any>} */
  async function data(route, body) {
    const answer = await (await send(route, { method: "POST", body })).json();
    if (answer.success) return answer.data;
    throw new ApiError(200, answer.message);
  }

  return { send, data };
}
