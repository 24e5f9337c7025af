"""What an evaluation found, as tables, figures and a page."""
