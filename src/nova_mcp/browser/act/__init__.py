"""Acting on a page: locate, click, type, choose, scroll, upload, navigate."""
