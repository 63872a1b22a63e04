"""Running counts: what is kept between two steps, and what leaves at the end of each."""
