"""The registry of tabs: which id means which page, for whom."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from playwright.async_api import Error, Page

from nova_mcp.browser.channel import PageChannel
from nova_mcp.browser.claims import Owner, is_live
from nova_mcp.browser.guard import NavigationGuard
from nova_mcp.browser.host_lag import HostLag
from nova_mcp.browser.sandboxes import Sandbox, Sandboxes, lost_browser
from nova_mcp.browser.tab import BLANK, Tab
from nova_mcp.browser.target_journal import EndReason, LastSeen, TargetJournal, TargetOpened
from nova_mcp.clock import Ports
from nova_mcp.errors import InvalidParams, NotFound, NovaError, Precondition
from nova_mcp.hosts import under
from nova_mcp.observation.model import Caller, Json
from nova_mcp.policy import NavigationPolicy
from nova_mcp.times import iso_utc
from nova_mcp.urls import page_host

__all__ = ["ACTIVE", "Tab", "TabQuery", "Targets", "looks_like_tab"]

ACTIVE = "active"
MAX_TABS = 200
MAX_TABS_PER_SANDBOX = 50
CLOSE_MS = 1000
