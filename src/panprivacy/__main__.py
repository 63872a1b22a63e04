"""`python -m panprivacy`."""

from panprivacy_launcher import main

if __name__ == "__main__":
    main()
