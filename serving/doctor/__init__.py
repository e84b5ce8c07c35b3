"""Says in words why prompts were not warm, from what the audit log keeps of each call."""
