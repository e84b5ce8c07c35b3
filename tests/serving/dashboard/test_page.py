from serving.config import ConfigFile
from serving.dashboard.page import sources
from serving.store.database import engine_for
from tests.showing import CONFIG
from tests.test_imports import loaded_by


def test_there_is_no_page_where_the_file_wants_none(tmp_path):
    path = tmp_path / "cascade.yaml"
    text = CONFIG.read_text(encoding="utf-8")
    path.write_text(text.replace("port: 8080", "port: 8080, dashboard: false"))
    database = engine_for(f"sqlite:///{tmp_path}/cascade.db")
    assert sources(ConfigFile(path), database) is None
    assert sources(ConfigFile(CONFIG), database) is not None
    database.dispose()


def test_a_service_without_a_page_loads_nothing_of_its_extra():
    loaded = loaded_by("import serving.app, serving.dashboard.page, serving.commands.serve")
    assert not loaded.intersection({"jinja2", "plotly"})
