"""Task memory: what recurring tasks need, how one run of them stands, and what of it is proven."""
