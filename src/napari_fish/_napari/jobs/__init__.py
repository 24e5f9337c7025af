"""Long work beside the viewer, and what it says."""
