"""Controls that several widgets use."""
