"""Shards on several machines that count one stream: each user in one of them, one answer of all."""
