"""Questions that many rules ask: does this fit, does this match."""
