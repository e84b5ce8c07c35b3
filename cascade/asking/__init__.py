"""Asking a tier's model one question about a text: judges and estimators do it alike."""
