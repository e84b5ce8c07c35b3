import pytest

from serving.store import schema
from serving.store.database import engine_for


@pytest.fixture
def fresh(tmp_path):
    """Makes databases with tables and nothing in them."""
    made = []

    def make():
        url = f"sqlite:///{tmp_path}/audit{len(made)}.db"
        schema.upgrade(url)
        made.append(engine_for(url))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()
