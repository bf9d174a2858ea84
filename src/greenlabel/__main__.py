"""`python -m greenlabel` is the command line."""

from greenlabel.cli import main

if __name__ == "__main__":
    main()
