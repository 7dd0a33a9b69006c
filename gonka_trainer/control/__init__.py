"""What drives this daemon: the control service, and the HTTP surface of an ML node."""
