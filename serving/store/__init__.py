"""The audit log: its tables, the sink that fills them off the request path, its queries."""
