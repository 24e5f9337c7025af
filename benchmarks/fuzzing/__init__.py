"""Files that are not what they should be: how they are made, what is asked of them, and where that is safe."""
