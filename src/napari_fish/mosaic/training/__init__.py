"""How the artefact filters are made: tissue and painted artefacts become examples, examples become plain numbers."""
