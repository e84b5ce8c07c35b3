from tests.databases import database, postgres, template
from tests.serving.store.conftest import engine, open_sink, spool

__all__ = ["database", "engine", "open_sink", "postgres", "spool", "template"]
