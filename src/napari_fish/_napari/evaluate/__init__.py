"""The *Evaluate* dock widget."""
