"""What goes out: answers, which are public, and the ledger, which is paid before they leave."""
