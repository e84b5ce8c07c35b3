"""What is behind each address of the page: a view asks, and fills in a template."""
