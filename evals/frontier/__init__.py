"""Quality against cost: policies replayed over outcomes, at every setting, without a model call."""
