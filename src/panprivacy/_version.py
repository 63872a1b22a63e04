"""The version, which the build reads and every state names."""

VERSION = "0.1.0"
