"""What the audit log can tell of policies that did not serve, and of traffic that has changed."""
