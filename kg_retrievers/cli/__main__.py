"""The command as `python -m kg_retrievers.cli`."""

import sys

from kg_retrievers.cli import main

if __name__ == "__main__":
    sys.exit(main())
