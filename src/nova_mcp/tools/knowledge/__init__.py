"""Tools that read, write and apply knowledge of sites."""
