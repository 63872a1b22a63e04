"""What the package promises of accuracy and speed, measured."""
