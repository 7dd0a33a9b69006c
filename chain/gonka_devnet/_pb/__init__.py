"""Generated code; see chain/proto."""
