"""What the package offers, as type checkers see it."""

from nova_mcp.app import Nova as Nova
from nova_mcp.app import build as build
from nova_mcp.calls.model import Answer as Answer
from nova_mcp.calls.model import CallRequest as CallRequest
from nova_mcp.embedding import Embedded as Embedded
from nova_mcp.embedding import open_nova as open_nova
from nova_mcp.errors import NovaError as NovaError
from nova_mcp.errors import UnknownTool as UnknownTool
from nova_mcp.server.manifest import ListedTool as ListedTool
from nova_mcp.settings import Settings as Settings
from nova_mcp.settings import load_settings as load_settings

__version__: str
