"""Downloads and uploads."""

__all__ = ["download_files", "download_rules", "downloads", "upload_files", "upload_rules", "upload_staging"]
