"""The training process: the only part that imports torch. It answers the daemon's jobs over the job link."""
