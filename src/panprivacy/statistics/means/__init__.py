"""What is the mean of the users that came, from the counters of a cropped sum?"""
