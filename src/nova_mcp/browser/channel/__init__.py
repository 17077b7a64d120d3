"""The private channel to a page's isolated world and its frames."""

__all__ = ["frame_ids", "frame_owners", "inline_frames", "messages", "page_channel", "stable_question"]
