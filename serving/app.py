"""Makes the FastAPI application around a service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from cascade.errors import CascadeError
from cascade.types import Failure
from serving import present
from serving.admin.door import Door
from serving.admin.routes import router as admin_router
from serving.answering import Answering, AnsweringFirst, json_response
from serving.feedback import router as feedback_router
from serving.idempotency import Idempotency
from serving.logs import RequestLog
from serving.messages import response as messages
from serving.messages.routes import MESSAGES
from serving.messages.routes import PATH as MESSAGES_PATH
from serving.responses.routes import PATH as RESPONSES_PATH
from serving.responses.routes import RESPONSES
from serving.responses.routes import router as responses_router
from serving.routes import CHAT, CHAT_PATH, router
from serving.service import Service

APIS = {CHAT_PATH: CHAT, MESSAGES_PATH: MESSAGES, RESPONSES_PATH: RESPONSES}
"""Where models are asked, and so where a repetition could be paid for twice."""


def create_app(service: Service) -> FastAPI:
    """The application; starting and stopping the service's parts is its lifespan."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with service.running():
                yield
        except CascadeError as error:
            app.state.fault = error  # for the command, which says it as a sentence
            raise

    app = FastAPI(
        title="Cascade",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # Cascade has its own
        routes=[Route(path, Answering(api), methods=["POST"]) for path, api in APIS.items()],
    )
    app.state.service = service
    app.state.fault = None
    app.state.door = Door()
    app.include_router(router)
    app.include_router(responses_router)
    app.include_router(feedback_router)
    app.include_router(admin_router)
    app.add_middleware(AnsweringFirst, apis=APIS, refuse=_refused)
    if service.metrics is not None:
        from serving.metrics.routes import InFlight, route  # noqa: PLC0415 - if it is used

        app.include_router(route(service, service.metrics))
        app.add_middleware(InFlight, metrics=service.metrics, paths=APIS)
    if service.page is not None:
        from serving.dashboard.routes import mounted  # noqa: PLC0415 - if it is used

        app.mount(service.page.root, mounted(service, service.page, app.state.door))
    app.add_middleware(Idempotency, service=service, paths=APIS, refuse=_refused)
    app.add_middleware(RequestLog)  # around all others, since it gives a request its id
    app.add_exception_handler(CascadeError, _refused)
    app.add_exception_handler(HTTPException, _no_such_route)
    app.add_exception_handler(Exception, _bug)
    return app


async def _refused(http: Request, error: Exception) -> Response:
    if not isinstance(error, CascadeError):
        raise error
    return _response(http, error, error.status)


async def _no_such_route(http: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    fault = Failure(
        type="HTTPException",
        message=f"{http.method} {http.url.path}: {error.detail}",
        status=error.status_code,
        code="no_such_route",
    )
    return _response(http, fault, error.status_code)


async def _bug(http: Request, error: Exception) -> Response:
    return _response(http, present.bug(error), 500)


def _response(http: Request, fault: CascadeError | Failure, status: int) -> Response:
    identity = http.state.request_id
    if http.url.path.startswith(MESSAGES_PATH):
        body = messages.error(fault, identity)
    else:
        body = present.error(fault)
    return json_response(body, status, present.identity(identity) | present.retry(fault))
