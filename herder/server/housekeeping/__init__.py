"""What an API server's surroundings do in a real cluster, and the engine does itself: namespaces, owners, CRDs, old history."""
