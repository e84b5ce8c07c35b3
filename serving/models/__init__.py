"""The embedded models: which there are, how their files get here, how they are served."""
