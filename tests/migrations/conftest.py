from tests.databases import database, empty_database, postgres, template

__all__ = ["database", "empty_database", "postgres", "template"]
