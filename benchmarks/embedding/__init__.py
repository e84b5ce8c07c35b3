"""What an embedding costs a request, and what the embedders are worth."""
