"""What the widgets of one viewer share."""
