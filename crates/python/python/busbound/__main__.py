"""``python -m busbound`` runs the command."""

from ._cli import main

main()
