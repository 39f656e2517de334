"""``/_emulator/events``: everything that happens in a double, as server-sent events.

Each event has an ``id:``, an ``event:`` and one line ``data:`` with a JSON object. It says how its
subject is *now*, in the words of the route that lists these subjects, and in ``happened`` what
happened to it since its last event, oldest first. What happens to one subject within 50 ms is one
event, so a quick request is one event: ``"happened": ["opened", "answered"]``.

=========== ======================================================= ==============================
event       happened                                                data, beside ``happened``
=========== ======================================================= ==============================
listening                                                           ``{}``: first, of a stream
                                                                    that resumes nothing
resync                                                              ``{}``: events were missed;
                                                                    read again what you show
request     opened, answered                                        an entry of ``/journal``, in
                                                                    short; ``duration_ms`` is null
                                                                    while it is being answered
session     begun, busy, idle, paused, resumed, ttl, ended          an item of ``sessions`` of
                                                                    ``/sessions``; if it ended, an
                                                                    item of ``ended``
clock       moved, frozen, unfrozen, reset                          ``/clock``
fault       armed, fired, released, removed                         an item of ``/faults``
unknowns    chosen                                                  ``in_force`` of ``/unknowns``
tool,       created, changed, deleted                               ``id``, ``name``
service,
toolset,
runtime
double      reset, restored                                         ``{}``: also sent when only
                                                                    some parts were reset
journal     cleared                                                 ``{}``
=========== ======================================================= ==============================

``?only=request,session`` leaves the other events out, but for ``listening`` and ``resync``. With
the header ``Last-Event-ID`` a stream resumes after that event. If that is not possible, because
the double is another one, or the event is too long ago, the first event is ``resync``. So it is
in the middle of a stream whose client reads too slowly. Every event, these two included, has an id
to resume from. A line ``:`` comes every 15 seconds. A stream ends when the double stops.
"""
