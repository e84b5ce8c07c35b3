"""What an operator may ask and change while the service runs."""
