"""One module per verb. Each is asked with the engine, the served kind, the target and the request, and returns an answer."""
