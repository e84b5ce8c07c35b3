"""Fitting of what is believed after a judge: see `cascade.posterior`."""
