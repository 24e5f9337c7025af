"""The *Results* dock widget."""
