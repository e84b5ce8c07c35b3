"""What judges read of an answer, as text."""

import json

from cascade.types import Completion


def answer_text(completion: Completion) -> str:
    """All that an answer says: its text, and its tool calls as JSON."""
    calls = [json.dumps(call.get("function") or call) for call in completion.tool_calls]
    return "\n".join(filter(None, [completion.text, *calls]))
