"""Hostile texts that try to act in the page that shows them, and a watch for their actions."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

ACT = (
    "document.documentElement.dataset.acted='ID';parent.acted='ID';parent.postMessage('ID','*');"
    "fetch('OUT');alert('ID');window.open('OUT')"
)
# ACT becomes the script above, OUT an address that nobody may ask, with the name of the text
HTML = {
    "script": "<script>ACT</script>",
    "script-elsewhere": '<script src="OUT"></script><script type="module" src="OUT"></script>',
    "import": "<script type=module>import 'OUT'; ACT</script>",
    "speculation": '<script type=speculationrules>{"prefetch":[{"urls":["OUT"]}]}</script>',
    "top": "<script>top.location = 'OUT'; parent.location.replace('OUT')</script>",
    "flood": "<script>for (let i = 0; i < 1e5; i++) parent.postMessage(1e9, '*'); ACT</script>",
    "img": '<img src=x onerror="ACT">',
    "img-elsewhere": '<img src="OUT"><img srcset="OUT 1x"><input type=image src="OUT">',
    "picture": '<picture><source srcset="OUT"><img src="OUT" loading=eager></picture>',
    "svg": '<svg onload="ACT"></svg>',
    "svg-script": '<svg><script>ACT</script><script href="OUT"></script></svg>',
    "svg-animation": '<svg><animate onbegin="ACT" attributeName=x dur=1ms repeatCount=indefinite>'
    "</animate></svg>",
    "svg-use": '<svg><use href="OUT#a"></use><image href="OUT"></image></svg>',
    "svg-foreign": '<svg><foreignObject><iframe src="OUT"></iframe></foreignObject></svg>',
    "svg-link": '<svg><a href="javascript:ACT"><text y=9>link</text></a><set attributeName=href '
    'to="javascript:ACT"></set></svg>',
    "iframe": '<iframe src="OUT"></iframe>',
    "iframe-srcdoc": "<iframe srcdoc=\"<script>parent.parent.postMessage('ID','*')</script>\"></iframe>",
    "iframe-script": '<iframe src="javascript:ACT"></iframe>',
    "frameset": '<frameset onload="ACT"><frame src="OUT"></frameset>',
    "object": '<object data="OUT"></object><object data="data:text/html,<script>ACT</script>"></object>',
    "embed": '<embed src="OUT"><embed src="data:image/svg+xml,<svg onload=ACT>">',
    "refresh": '<meta http-equiv=refresh content="0;url=OUT">',
    "refresh-data": '<meta http-equiv=refresh content="0;url=data:text/html,<script>ACT</script>">',
    "cookie": '<meta http-equiv=set-cookie content="hostile=ID">',
    "policy": '<meta http-equiv=Content-Security-Policy content="script-src *"><img src=x onerror="ACT">',
    "base": '<base href="OUT/" target=_top><img src=relative><a href=relative>link</a>',
    "link": '<link rel=stylesheet href="OUT"><link rel=icon href="OUT"><link rel=manifest href="OUT">',
    "preload": '<link rel=preload as=image href="OUT"><link rel=preconnect href="OUT">'
    '<link rel=prefetch href="OUT"><link rel=modulepreload href="OUT">',
    "css-import": '<style>@import "OUT";</style>',
    "css-font": "<style>@font-face { font-family: a; src: url(OUT) } p { font-family: a }</style><p>a",
    "css-urls": "<style>p { background: url(OUT); cursor: url(OUT), auto; border-image: url(OUT) }"
    "p::before { content: url(OUT) }</style><p>a",
    "css-attribute": '<p style="background: url(OUT); behavior: url(OUT); -moz-binding: url(OUT)">a',
    "css-animation": '<style>@keyframes a {}</style><p style="animation: a 1ms" onanimationstart="ACT">',
    "css-escape": '<style></style><img src=x onerror="ACT"></style>',
    "form": '<form action="OUT"><input autofocus onfocus="ACT" name=a><button>send</button></form>',
    "form-top": '<form action="OUT" method=post target=_top><button formaction="OUT">send</button></form>',
    "form-script": '<form action="javascript:ACT"><button formaction="javascript:ACT">send</button></form>',
    "link-script": '<a href="javascript:ACT">link</a><a href="&#106;avascript:ACT">link</a>',
    "link-elsewhere": '<a href="OUT" ping="OUT">link</a>',
    "link-top": '<a href="OUT" target=_top>link</a><a href="OUT" target=_parent>link</a>',
    "link-new": '<a href="OUT" target=_blank>link</a><a href="OUT" target=other>link</a>',
    "link-down": '<a href="data:text/html,ID" download=a.html>link</a>',
    "link-data": '<a href="data:text/html,<script>ACT</script>">link</a>',
    "area": '<map name=m><area href="javascript:ACT" shape=default></map><img usemap="#m" src=x>',
    "media": '<video poster="OUT" src="OUT" autoplay><track src="OUT" default></video>'
    '<audio src="OUT" autoplay onerror="ACT"></audio>',
    "toggle": '<details open ontoggle="ACT"><summary>a</summary></details><marquee onstart="ACT">a',
    "dialog": '<dialog open onclose="ACT"><form method=dialog><button>close</button></form></dialog>',
    "popover": '<button popovertarget=a>open</button><div id=a popover onbeforetoggle="ACT">a</div>',
    "mathml": '<math href="javascript:ACT"><mtext><img src=x onerror="ACT"></mtext></math>',
    "mutation": '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x '
    'onerror=ACT&gt;">',
    "noscript": '<noscript><p title="</noscript><img src=x onerror=ACT>"></noscript>',
    "template": '<div><template shadowrootmode=open><img src=x onerror="ACT"></template></div>',
    "body": '<html onclick="ACT"><body onload="ACT" onpageshow="ACT" background="OUT">a',
    "comment": '<!--[if true]><img src=x onerror="ACT"><![endif]--><!--><img src=x onerror="ACT">-->',
    "height": '<div style="height: 9000000px; width: 9000000px">a</div>',
}
_HEARD = (
    "() => { window.same = true; window.heard = [];"
    " addEventListener('message', (event) => heard.push(event.data)); }"
)
_CLICKED = (
    "() => { for (const one of document.querySelectorAll('a, area, button, input, summary'))"
    " one.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })); }"
)
_ACTED = (
    "() => [window.acted, document.documentElement.dataset.acted, ({}).polluted]"
    ".filter((one) => one !== undefined)"
)


class Watch:
    """Record the actions of hostile texts in a page and the requests they send."""

    def __init__(self, page: Page, server: socket.socket) -> None:
        self._page = page
        self._server = server
        server.setblocking(False)
        self._noticed: list[str] = []
        page.on("dialog", lambda box: self._notice(f"a dialog: {box.message}", box.dismiss))
        page.on("download", lambda download: self._notice(f"a download of {download.url}"))
        page.context.on("page", lambda window: self._notice(f"a window of {window.url}"))
        page.evaluate(_HEARD)

    @property
    def address(self) -> str:
        """Return the URL that must receive no requests."""
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def armed(self, name: str, text: str) -> str:
        """Return a text with its name in each action."""
        acting = text.replace("ACT", ACT)
        return acting.replace("OUT", f"{self.address}/{name}").replace("ID", name)

    def html(self) -> list[str]:
        """Return all hostile HTML."""
        return [self.armed(name, text) for name, text in HTML.items()]

    def click(self) -> None:
        """Click every clickable element in the frames of outputs."""
        for frame in self._page.frames[1:]:
            frame.evaluate(_CLICKED)

    def noticed(self) -> list[Any]:
        """Return the recorded actions."""
        for frame in self._page.frames:
            self._noticed += frame.evaluate(_ACTED)
        for notice in self._page.evaluate("() => [window.same, ...(window.heard ?? [])]"):
            if notice not in (True, "ready") and not isinstance(notice, (int, float)):
                self._notice(f"a message: {notice}")
        self._noticed += [f"a cookie: {cookie}" for cookie in self._page.context.cookies()]
        return self._noticed + self._callers()

    def _callers(self) -> list[str]:
        try:
            self._server.accept()[0].close()
        except BlockingIOError:
            return []
        return ["a connection"]

    def _notice(self, notice: str, action: Any = None) -> None:
        self._noticed.append(notice)
        if action is not None:
            action()
