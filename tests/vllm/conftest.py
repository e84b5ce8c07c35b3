import json
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.processes import CascadeProcess, wait_for
from tests.vllm import servers


class Service:
    """`cascade serve` in front of the vLLM servers, and what its audit log says."""

    def __init__(self, process):
        self._process = process
        self.url = process.url

    def record(self, request_id):
        """The audit record of a request, which is written a moment after its answer."""
        wait_for(lambda: request_id in self._process.run("audit", "tail", "--json"), 20)
        return json.loads(self._process.run("audit", "show", request_id, "--json"))

    def run(self, *arguments):
        return self._process.run(*arguments)


@pytest.fixture(scope="session")
def vllm():
    """The servers run; the group is skipped where nothing can start them."""
    if not servers.script().is_file():
        pytest.skip(
            f"there is no {servers.script()}; {servers.SCRIPT_VARIABLE} names the folder of a "
            "script that starts vLLM"
        )
    with servers.running():
        yield servers


@pytest.fixture(scope="session")
def service(vllm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vllm")
    shutil.copy(Path(__file__).with_name("cascade.yaml"), folder)
    process = CascadeProcess(folder / "cascade.yaml", CASCADE_HOME=str(folder / "home"))
    process.start()
    yield Service(process)
    process.stop()
