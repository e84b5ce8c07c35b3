"""The sub-commands, one module each."""
