"""`python -m panprivacy`."""

from panprivacy.cli import main

if __name__ == "__main__":
    main()
