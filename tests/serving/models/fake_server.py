"""Stands in for a model server: healthy at once, and ends when its standard input does."""

import argparse
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--fail", action="store_true", help="end at once, with a word in the log")
parser.add_argument("--sick", action="store_true", help="never be healthy")
parser.add_argument("--stubborn", action="store_true", help="take no notice of SIGTERM")
arguments = parser.parse_args()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if arguments.sick else 200)
        self.end_headers()
        self.wfile.write(f"{os.getpid()} {self.headers['Authorization']}".encode())

    def log_message(self, *_: object) -> None:
        pass


def end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(0)


def end_gently(*_: object) -> None:
    os.write(1, b"asked to end\n")
    os._exit(0)


signal.signal(signal.SIGTERM, signal.SIG_IGN if arguments.stubborn else end_gently)
if arguments.fail:
    sys.exit("the model file is broken")
threading.Thread(target=end_with_parent, daemon=True).start()
sys.stdout.write(f"key {os.environ['CASCADE_MODEL_KEY']}\n")
sys.stdout.flush()
ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler).serve_forever()
