"""OpenAI's Responses API in front of the same engine, without state on the server."""
