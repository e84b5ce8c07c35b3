import socket

import pytest

from serving.alerts.log import Alert
from serving.alerts.webhook import RefusedError, Webhook, WebhookError
from tests.serving.alerts.hooks import listening

ALERT = Alert(
    id=7,
    created_at=100.0,
    kind="cost",
    subject="default",
    message="it is dear",
    details={"now": 1.0},
    delivered_at=None,
)


async def test_an_alert_arrives_as_json_with_a_text_for_people():
    async with listening() as hook:
        await Webhook(hook.url).send(ALERT)
    assert hook.came == [
        {
            "text": "Cascade: it is dear",
            "id": 7,
            "created_at": 100.0,
            "kind": "cost",
            "subject": "default",
            "message": "it is dear",
            "details": {"now": 1.0},
        }
    ]


async def test_it_is_tried_again():
    async with listening([500, 429]) as hook:
        await Webhook(hook.url, pauses_seconds=(0, 0, 0)).send(ALERT)
    assert len(hook.came) == 3


@pytest.mark.parametrize("status", [404, 500, 302])
async def test_what_is_not_taken_is_an_error_without_the_address(status):
    async with listening([status] * 3) as hook:
        with pytest.raises(WebhookError, match=f"status {status}") as failed:
            await Webhook(hook.url, pauses_seconds=(0, 0, 0)).send(ALERT)
    assert len(hook.came) == 3
    assert "secret" not in str(failed.value)


async def test_what_is_refused_is_not_tried_again():
    async with listening([422]) as hook:
        with pytest.raises(RefusedError, match="status 422"):
            await Webhook(hook.url, pauses_seconds=(0, 0, 0)).send(ALERT)
    assert len(hook.came) == 1


async def test_nobody_there_is_an_error_without_the_address():
    async with listening() as hook:
        pass
    with pytest.raises(WebhookError, match="cannot be reached") as failed:
        await Webhook(hook.url, pauses_seconds=(0,)).send(ALERT)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("url", ["http://[::1/secret", "http://host:99999/secret"])
async def test_an_address_that_is_none_is_an_error_without_the_address(url):
    with pytest.raises(WebhookError, match="cannot be reached") as failed:
        await Webhook(url, pauses_seconds=(0,)).send(ALERT)
    assert "secret" not in str(failed.value)


async def test_one_that_does_not_answer_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes connections, and no more
        port = server.getsockname()[1]
        hook = Webhook(f"http://127.0.0.1:{port}/", timeout_seconds=0.1, pauses_seconds=(0,))
        with pytest.raises(WebhookError, match=r"within 0.1 s"):
            await hook.send(ALERT)
