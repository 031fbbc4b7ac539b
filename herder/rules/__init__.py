"""What should happen: pure functions, a snapshot in, a plan out. No clock, no chance, no files, no network."""
