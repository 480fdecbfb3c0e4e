"""``python -m busbound`` is the command."""

from ._cli import main

main()
