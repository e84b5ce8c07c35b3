"""The prompt set of six kinds: what it is made of, and the making of evals/prompts/tasks.jsonl."""
