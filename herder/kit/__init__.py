"""What the engine, the controllers and the agents share, and that knows nothing of any of them."""
