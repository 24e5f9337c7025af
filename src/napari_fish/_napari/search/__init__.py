"""The *Search* dock widget."""
