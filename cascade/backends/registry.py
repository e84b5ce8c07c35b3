"""The backends there are. A new one is a new file and a line here."""

from typing import Final

BACKENDS: Final = {
    "litellm_api": "cascade.backends.litellm_api:LitellmBackend",
    "openai_http": "cascade.backends.openai_http:OpenAIHttpBackend",
    "scripted": "cascade.backends.scripted:ScriptedBackend",
}
