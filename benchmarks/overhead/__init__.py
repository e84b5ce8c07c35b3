"""What the service adds to a call, beside the proxy to beat."""
