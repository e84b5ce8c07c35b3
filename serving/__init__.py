"""The service around the domain: configuration, HTTP, audit store, model servers, command line."""
