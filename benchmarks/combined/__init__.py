"""Before the call, after it, or both: what each wins back on a table of full answers."""
