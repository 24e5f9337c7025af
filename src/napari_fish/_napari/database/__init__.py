"""The *Database* dock widget."""
