"""Starting when something is wrong: a sentence that says what to do, and nothing half-started."""

import os
import socket
import subprocess

from tests.end_to_end.processes import COMMAND
from tests.serving.test_config import GOOD


def serve(folder, text, *arguments):
    config = folder / "cascade.yaml"
    config.write_text(text)
    return subprocess.run(
        [*COMMAND, "serve", "--config", str(config), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "CASCADE_HOME": str(folder / "home")},
    )


def last_line(done):
    return done.stderr.strip().splitlines()[-1]


def test_a_port_that_is_taken_is_said_before_anything_is_started(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = serve(tmp_path, GOOD, "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "Choose another port with --port" in last_line(done)
    assert not (tmp_path / "cascade.db").exists()


def test_a_configuration_that_cannot_work_is_said_with_its_line(tmp_path):
    done = serve(tmp_path, GOOD.replace("accept_at: 0.7", "accept_at: 7"), "--port", "0")
    assert done.returncode == 1
    assert "cascade.yaml:22:" in last_line(done)


def test_a_model_server_that_does_not_start_is_said_with_the_end_of_its_log(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"nothing of use")
    launch = (
        f"backend: openai_http\n    launch: {{engine: llama_cpp, model: {tmp_path}/broken.gguf}}"
    )
    text = GOOD.replace("backend: scripted\n    answers: [four]", launch)
    done = serve(tmp_path, text, "--port", "0")
    assert done.returncode == 1
    assert "the model server of tier 'small'" in done.stderr
    assert "did not start" in done.stderr
    assert str(tmp_path / "home" / "logs" / "small.log") in done.stderr


def test_a_database_that_a_newer_version_made_is_refused(tmp_path):
    import sqlite3

    from serving.store import schema

    schema.upgrade(f"sqlite:///{tmp_path}/cascade.db")
    with sqlite3.connect(tmp_path / "cascade.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'zzzz'")
    connection.close()
    done = serve(tmp_path, GOOD, "--port", "0")
    assert done.returncode == 1
    assert "a newer Cascade made it" in done.stderr
