"""Acting on a page: locate, click, type, choose, scroll, upload, navigate."""

__all__ = [
    "action",
    "action_report",
    "choose",
    "click",
    "hover",
    "locate",
    "navigate",
    "navigation_report",
    "press_keys",
    "script",
    "scroll",
    "secret_entry",
    "type_text",
    "upload",
]
