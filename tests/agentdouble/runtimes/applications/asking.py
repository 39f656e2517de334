"""A program that evaluates expressions and answers with JSON.

It uses the standard library alone: any Python runs it, and it starts at once.
"""

import glob
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

KNOWN = {
    module.__name__: module
    for module in (glob, os, pathlib, signal, subprocess, sys, threading, time)
}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answer ``POST`` with the value of an expression, or the name of its exception."""

    def do_POST(self):
        expression = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            value = eval(expression, dict(KNOWN))
        except BaseException as error:
            value = type(error).__name__
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_arguments):
        """Print nothing."""


if __name__ == "__main__":
    address = ("127.0.0.1", int(os.environ["PORT"]))
    http.server.ThreadingHTTPServer(address, Handler).serve_forever()
