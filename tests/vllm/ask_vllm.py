"""Run by vLLM's own Python: what its parser makes of lines, and which fields its API knows.

The lines of `vllm serve` come as JSON, one word a string. One line of JSON answers: for each what
the parser read, null where it refused; and the names of the fields of a chat completion.
"""

import json
import sys

from vllm.entrypoints.cli.serve import cmd_init
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = FlexibleArgumentParser()
commands = parser.add_subparsers()
[serve] = cmd_init()
serve.subparser_init(commands)


def read(words):
    try:
        arguments = parser.parse_args(words)
        serve.validate(arguments)
    except SystemExit:
        return None
    names = ("model_tag", "served_model_name", "port", "max_model_len")
    return [getattr(arguments, name) for name in names]


lines = [read(words) for words in json.loads(sys.argv[1])]
fields = list(ChatCompletionRequest.model_fields)
sys.stdout.write(json.dumps({"lines": lines, "fields": fields}) + "\n")
