"""Tells a tracing system of each request, in the terms of OpenTelemetry."""
