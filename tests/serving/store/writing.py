"""A process that audits requests without pause until it is ended, and says which it took.

Each line it prints is a request's number and the time at which `write` returned. SIGTERM closes the
sink first, as the service does.
"""

import os
import signal
import sys
import time
from pathlib import Path

from serving.store.database import engine_for
from serving.store.journal import Limits
from serving.store.sink import SqlAuditSink
from tests.builders import escalated


def main(url: str, spool: str, flush_interval: str) -> None:
    limits = Limits(flush_interval=float(flush_interval))
    sink = SqlAuditSink(engine_for(url), Path(spool), limits=limits)
    sink.start()
    ended = False

    def end(_signal: int, _frame: object) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    number = 0
    while not ended:
        sink.write(escalated(f"r{number:07d}"))
        os.write(1, b"%d %d\n" % (number, time.time_ns()))
        number += 1
        time.sleep(0.001)
    sink.close(timeout=30)


if __name__ == "__main__":
    main(*sys.argv[1:])
