"""Input of the service: bodies of requests and log lines, until their stream has counted them."""
