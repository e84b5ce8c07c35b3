"""What overrides the configuration file while the service runs."""
