"""Starts a supervised fake server, says where it is, and waits to be killed."""

import asyncio
import sys
from pathlib import Path

from serving.models.child import free_ports
from serving.models.supervisor import ModelServer

script, home = Path(__file__).with_name("fake_server.py"), Path(sys.argv[1])


async def main() -> None:
    (port,) = free_ports(1)
    command = [sys.executable, str(script), "--port", str(port)]
    server = ModelServer(tier="small", model="fake", command=command, port=port, home=home)
    await server.start()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


asyncio.run(main())
