"""What is the sum, over users, of the products of their states in two streams?"""
