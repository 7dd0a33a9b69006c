"""What this host keeps on disk: the journal of events, blobs and states, small documents."""
