"""What somebody should look at: found in the audit log, kept there, and sent to a webhook."""
