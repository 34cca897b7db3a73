"""``python -m softtargets`` is the same as ``softtargets``."""

from softtargets.cli import main

if __name__ == "__main__":
    main()
