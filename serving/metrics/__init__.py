"""What Prometheus is told: counted from results as they are recorded, and from state when asked."""
