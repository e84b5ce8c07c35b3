"""The process behind an embedded model: llama.cpp's own OpenAI server, from the xllamacpp wheel.

A process of its own keeps the service's event loop free and its memory apart, and can crash alone.
It lives as long as its standard input is open: the supervisor holds the other end, so however the
supervisor ends, the server ends too. SIGTERM keeps its default action, which is immediate.
"""

import argparse
import os
import sys
import threading
from typing import Any

KEY_VARIABLE = "CASCADE_MODEL_KEY"
"""Holds the API key that the server shall ask for; in the environment, as arguments are public."""


def main() -> None:
    """Serve until standard input closes or a signal comes."""
    arguments = _arguments()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        import xllamacpp  # noqa: PLC0415 - a hundred megabytes that only this process needs
    except ImportError:
        sys.exit("embedded models need the package xllamacpp: pip install 'cascade-router[models]'")
    server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), arguments))
    threading.Event().wait()
    del server  # it serves for as long as it is referred to


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m serving.models.llama_cpp")
    parser.add_argument("--model", required=True, help="path of a .gguf file")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--alias", required=True, help="name of the model in answers")
    parser.add_argument("--context", type=int, required=True, help="tokens a slot")
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cache-ram-mib", type=int, required=True)
    return parser.parse_args()


def _parameters(params: Any, arguments: argparse.Namespace) -> Any:
    params.model.path = arguments.model
    params.model_alias = {arguments.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = arguments.port
    params.n_ctx = arguments.context * arguments.slots
    params.n_parallel = arguments.slots
    params.cache_ram_mib = arguments.cache_ram_mib
    for pool in (params.cpuparams, params.cpuparams_batch):
        pool.n_threads = arguments.threads
        pool.poll = 0  # idle threads sleep instead of spinning
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.ui = False
    # No web page has business with this server: it wants a key, and allows its own origin only.
    params.cors_origins = f"http://127.0.0.1:{arguments.port}"
    params.cors_credentials = False
    key = os.environ.pop(KEY_VARIABLE, "")
    params.api_keys = [key] if key else []
    return params


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
