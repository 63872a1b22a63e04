"""Who came in a window, as a noisy table that is published and compared with those of others."""
