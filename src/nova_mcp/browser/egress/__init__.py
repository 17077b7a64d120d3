"""Egress: every connection that a launched browser makes, judged by the address that it is then made to."""

from nova_mcp.browser.egress.network import Network, system_network, system_proxy
from nova_mcp.browser.egress.proxy import Egress, EgressProxy, EgressRules

__all__ = ["Egress", "EgressProxy", "EgressRules", "Network", "document_guard", "system_network", "system_proxy"]
