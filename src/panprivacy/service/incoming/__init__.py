"""What comes in: bodies of requests and log lines, until their stream has counted them."""
