"""The backends there are. A new one is a new file and a line here."""

from typing import Final

BACKENDS: Final = {
    "openai_http": "cascade.backends.openai_http:OpenAIHttpBackend",
    "scripted": "cascade.backends.scripted:ScriptedBackend",
}
