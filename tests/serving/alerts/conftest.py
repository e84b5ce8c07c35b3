from tests.databases import database, postgres, template
from tests.serving.store.conftest import engine

__all__ = ["database", "engine", "postgres", "template"]
