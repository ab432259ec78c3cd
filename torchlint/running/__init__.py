"""Many files: processes, machines, the cache and the progress bar."""
