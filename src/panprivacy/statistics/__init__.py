"""One question, one folder: its sizes, plan, decoder and class. `catalogue` lists them."""
