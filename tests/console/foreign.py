"""Attempts of a foreign page to use the console; each returns its result or null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

# url is the console's address, token its token or a wrong one
TRIES = {
    "fetch": "(await fetch(url + '/api/sessions', { headers })).text()",
    "fetch without headers": "(await fetch(url + '/api/console/connection')).text()",
    "fetch no-cors": "(await fetch(url + '/api/sessions', { mode: 'no-cors', headers })).text()",
    "fetch the shell": "(await fetch(url + '/')).text()",
    "import": "Object.keys(await import(url + '/static/lib/words.js'))",
    "script": "element('script', 'src', '/static/lib/words.js')",
    "script of data": "element('script', 'src', '/api/sessions?token=' + token)",
    "picture": "element('img', 'src', '/static/icon.svg')",
    "style": "element('link', 'href', '/static/console.css', { rel: 'stylesheet' })",
    "frame": "framed('/')",
    "frame with the token": "framed('/#token=' + token)",
    "frame of outputs": "framed('/frame')",
    "window": "opened('/#token=' + token)",
    "EventSource": "heard(new EventSource(url + '/api/events?token=' + token), 'open')",
    "WebSocket": "heard(new WebSocket(url.replace('http', 'ws') + '/api/events'), 'open')",
    "write": "(await fetch(url + '/api/clock', { method: 'POST', body, headers:"
    " { ...headers, 'Content-Type': 'application/json' } })).text()",
    "write no-cors": "(await fetch(url + '/api/clock', { method: 'POST', body, mode: 'no-cors' })).text()",
    "write as a file": "(await fetch(url + '/api/clock', { method: 'POST', mode: 'no-cors',"
    " body: new Blob([body], { type: 'application/octet-stream' }) })).text()",
    "delete": "(await fetch(url + '/api/journal', { method: 'DELETE', headers })).text()",
    "form": "sent('text/plain')",
    "form urlencoded": "sent('application/x-www-form-urlencoded')",
    "form multipart": "sent('multipart/form-data')",
}
_TRIED = """async ({ url, token, what }) => {
  const headers = { Authorization: `Bearer ${token}` };
  const body = '{"advance_s": 60}';
  const heard = (one, event) => new Promise((resolve) => {
    one.addEventListener(event, () => resolve(event));
    one.addEventListener("error", () => resolve(null));
  });
  const put = (one, parts) => document.documentElement.append(Object.assign(one, parts));
  const element = (tag, name, path, more = {}) => {
    const one = document.createElement(tag);
    put(one, { ...more, [name]: url + path });
    return heard(one, "load");
  };
  const framed = async (path) => {
    const one = document.createElement("iframe");
    const loaded = heard(one, "load");
    put(one, { src: url + path });
    await loaded;
    return one.contentDocument?.body.innerText ?? null;
  };
  const opened = async (path) => {
    const one = window.open(url + path); // closed where it is not ours to hold
    await framed(path);
    while (!one.closed && !one.document.body?.innerText) await new Promise(requestAnimationFrame);
    return one.closed ? null : one.document.body.innerText;
  };
  const sent = async (enctype) => {
    const frame = document.createElement("iframe"), form = document.createElement("form");
    put(frame, { name: `to-${Math.random()}` });
    put(form, { method: "post", action: url + "/api/clock", target: frame.name, enctype });
    const input = document.createElement("input");
    form.append(Object.assign(input, { name: '{"advance_s": 60, "a": "', value: '"}' }));
    const loaded = heard(frame, "load");
    const refused = new Promise((resolve) =>
      addEventListener("securitypolicyviolation", () => resolve(null), { once: true }));
    form.submit();
    await Promise.race([loaded, refused]);
    return frame.contentDocument?.body.innerText || null;
  };
  try { return (await EXPRESSION) || null; } catch { return null; }
}"""


def got(page: Page, url: str, token: str) -> dict[str, Any]:
    """Return what a foreign page gets from the console at this URL."""
    arguments = {"url": url, "token": token, "what": ""}
    results = {
        name: page.evaluate(_TRIED.replace("EXPRESSION", expression), arguments)
        for name, expression in TRIES.items()
    }
    return {name: result for name, result in results.items() if result is not None}
