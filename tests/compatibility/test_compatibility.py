import pytest

from tests.compatibility.table import COMMAND, ENDPOINTS, FILE, page


async def test_the_page_says_what_becomes_of_each_field():
    found = await page()
    assert FILE.read_text(encoding="utf-8") == found, f"`{COMMAND}` writes it anew"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.title)
def test_every_field_that_the_official_client_knows_is_probed(endpoint):
    probed = {name for case in endpoint.cases for name in case.adds | case.beside}
    assert endpoint.client_fields - probed == {"model"}
    names = [case.name for case in endpoint.cases]
    assert len(set(names)) == len(names)
