"""How encoders are made."""
