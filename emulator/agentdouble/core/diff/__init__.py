"""The diff: where two answers to one call differ by more than ids and times.

``answers`` compares the status, the content type, the body or the events of two answers, and
``documents`` two JSON values. ``pairs`` matches the ids of the two sides. ``fields`` declares which
values differ between any two platforms, by the name of the operation (``operations``) and the path;
``patterns`` matches both.

What-if uses it to compare two answers of a double, and ``doublecheck twin`` the answers of two
platforms.
"""
