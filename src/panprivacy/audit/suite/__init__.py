"""What is audited: the products that ship, and the controls that must be caught."""
