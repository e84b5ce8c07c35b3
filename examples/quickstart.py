"""The shortest useful program: an easy and a hard question, who answered, what it cost.

Needs a running service: `make run` in another terminal.
"""

import sys

from openai import APIConnectionError, OpenAI

QUESTIONS = (
    "What is 12 + 7? Reply with the number only.",
    "What is 94 * 38? Reply with the number only.",
)


def main(base_url: str = "http://127.0.0.1:8080/v1") -> None:
    """Ask the cascade twice, then once more word by word."""
    ai = OpenAI(base_url=base_url, api_key="none")
    for question in QUESTIONS:
        raw = ai.chat.completions.with_raw_response.create(
            model="cascade", messages=[{"role": "user", "content": question}]
        )
        answer, told = raw.parse().choices[0].message.content, raw.headers
        print(f"{question}\n  {answer}   [{told['x-cascade-tier']}, ${told['x-cascade-cost-usd']}]")
    asked = "Name three fruits."
    print(asked, end="\n  ")
    for chunk in ai.chat.completions.create(
        model="auto", messages=[{"role": "user", "content": asked}], stream=True
    ):
        print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="", flush=True)
    print()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except APIConnectionError as error:
        sys.exit(f"no service answers at {error.request.url}; start one with `make run`")
