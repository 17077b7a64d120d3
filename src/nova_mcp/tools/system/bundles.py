"""The index of tools: by bundle, by name, or by words."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.tools.arguments import shown
from nova_mcp.tools.catalogue import BUNDLES, Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.names import canonical_name
from nova_mcp.tools.publish import lean_schema, open_schema
from nova_mcp.tools.spec import RARE, AgentParams, Part, Result, ToolSpec, compact, maybe, tool
from nova_mcp.tools.system.call import no_such_tool
from nova_mcp.tools.system.tool_ranking import rank_tools

DEFAULT_BUNDLE = "browser_automation"


class ToolsBundleParams(AgentParams):
    bundle: str | None = Field(None, min_length=1, max_length=64)
    tool_name: str | None = Field(None, min_length=1, max_length=120)
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)] | None = Field(
        None, description="what you want to do"
    )
    max_results: int = Field(20, ge=1, le=50, json_schema_extra=RARE)
    include_descriptions: bool = Field(default=False, json_schema_extra=RARE)
    include_input_schema: bool | None = Field(None, json_schema_extra=RARE)
    include_unavailable: bool = Field(default=True, json_schema_extra=RARE)
    include_catalog: bool = Field(default=True, json_schema_extra=RARE)


class ShownTool(Part):
    name: str
    available: bool = True
    description: str | None = maybe()
    input_schema: dict[str, Any] | None = maybe()
    output_schema: dict[str, Any] | None = maybe()


class BundleEntry(Part):
    bundle: str
    description: str
    tool_count: int


class ToolsBundleResult(Result):
    lookup: str
    resolved_bundle: str | None = None
    description: str | None = maybe()
    tool_names: list[str]
    tools: list[ShownTool]
    available_count: int
    requested_count: int
    has_more: bool = False
    partial_match: bool = False
    listed: bool
    known_bundles: list[str]
    bundle_catalog: list[BundleEntry] = maybe([])

    def text(self) -> str:
        """One line a tool; schemas only where they were asked for."""
        which = f"{self.lookup} {self.resolved_bundle}" if self.resolved_bundle else self.lookup
        lines = [f"{which}: {len(self.tools)} tools{f' · {self.description}' if self.description else ''}"]
        for one in self.tools:
            schema = f" {compact(one.input_schema)}" if one.input_schema else ""
            off = "" if one.available else " (switched off)"
            lines.append(f"{one.name}{off}{f': {one.description}' if one.description else ''}{schema}")
        if self.has_more:
            lines.append(f"and {self.requested_count - len(self.tools)} more; raise maxResults or narrow the query")
        if self.partial_match:
            lines.append("no tool matches every word; these match some")
        lines.append(f"bundles: {' '.join(self.known_bundles)} · run any tool with nova.call {{tool, args}}")
        return "\n".join(lines)


@tool(title="Find tools", effect="read", bundles=("core", "system_tools"), target="none")
async def tools_bundle(ctx: ToolContext, p: ToolsBundleParams) -> ToolsBundleResult:
    """Looks up tools by bundle, name or words, with their arguments. Whatever it shows can be run with nova.call."""
    given = [name for name in ("bundle", "tool_name", "query") if getattr(p, name) is not None]
    if len(given) > 1:
        raise InvalidParams("conflicting_lookup")
    catalogue = ctx.catalogue
    if p.tool_name is not None:
        named = _named(catalogue, p.tool_name)
        return _answer(ctx, p, "toolName", [named]).model_copy(update={"description": named.description})
    if p.query is not None:
        found, partial = rank_tools(p.query, catalogue)
        return _answer(ctx, p, "query", found, partial=partial)
    bundle = p.bundle or DEFAULT_BUNDLE
    if bundle not in BUNDLES:
        known: list[Json] = list(BUNDLES)
        raise InvalidParams(
            "unknown_bundle",
            f"there is no bundle {shown(bundle)}",
            details={"knownBundles": known},
        )
    return _answer(ctx, p, "bundle", catalogue.bundle(bundle), bundle=bundle)


def _named(catalogue: Catalogue, raw: str) -> ToolSpec:
    name = canonical_name(raw)
    for spec in catalogue:
        if spec.canonical == name:
            return spec
    raise no_such_tool(raw, catalogue.closest(name))


def _answer(
    ctx: ToolContext,
    p: ToolsBundleParams,
    lookup: str,
    found: list[ToolSpec],
    *,
    bundle: str | None = None,
    partial: bool = False,
) -> ToolsBundleResult:
    wanted = [spec for spec in found if p.include_unavailable or spec.available(ctx.settings)]
    picked = wanted[: p.max_results] if lookup == "query" else wanted
    schemas = p.include_input_schema if p.include_input_schema is not None else lookup == "toolName"
    listed = ctx.catalogue.listed(ctx.settings.tools)
    return ToolsBundleResult(
        lookup=lookup,
        resolved_bundle=bundle,
        description=BUNDLES[bundle] if bundle else None,
        tool_names=[spec.canonical for spec in picked],
        tools=[_shown(spec, ctx, described=p.include_descriptions, schema=schemas) for spec in picked],
        available_count=sum(spec.available(ctx.settings) for spec in picked),
        requested_count=len(wanted),
        has_more=len(picked) < len(wanted),
        partial_match=partial,
        listed=all(spec.canonical in listed for spec in picked),
        known_bundles=list(BUNDLES),
        bundle_catalog=[
            BundleEntry(bundle=name, description=text, tool_count=len(ctx.catalogue.bundle(name)))
            for name, text in BUNDLES.items()
        ]
        if p.include_catalog
        else [],
    )


def _shown(spec: ToolSpec, ctx: ToolContext, *, described: bool, schema: bool) -> ShownTool:
    return ShownTool(
        name=spec.canonical,
        available=spec.available(ctx.settings),
        description=spec.description if described else None,
        input_schema=lean_schema(spec.params.model_json_schema(by_alias=True)) if schema else None,
        output_schema=open_schema(spec) if schema and ctx.settings.output_schemas else None,
    )
