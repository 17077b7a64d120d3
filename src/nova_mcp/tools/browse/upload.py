"""Handing files to a page."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final

import anyio
from pydantic import Field

from nova_mcp.browser.act.action_report import Judgement
from nova_mcp.browser.act.upload import upload
from nova_mcp.browser.files.download_files import OwnFiles
from nova_mcp.browser.files.upload_files import UploadFile, read_files
from nova_mcp.browser.perceive.element_lines import quoted
from nova_mcp.tools.browse.act_support import (
    ACTING_GATES,
    Answering,
    ElementResult,
    act_deadline,
    manner_of,
    reserves,
    tell,
    wish_of,
)
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import ActParams, ContractParams, OneElementParams
from nova_mcp.tools.guarded.guard import CallGuard, Wish
from nova_mcp.tools.spec import Part, TargetParams, tool, widened

_READING_MS: Final = 20_000


class UploadParams(TargetParams, OneElementParams, ActParams, ContractParams):
    paths: list[Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]] = Field(
        min_length=1, max_length=20, description="files in the uploads folder, or absolute paths in an allowed one"
    )


class FileSent(Part):
    file_name: str
    bytes: int
    sha256: str


class UploadResult(ElementResult):
    files: list[FileSent]
    accepted: bool

    def _details(self) -> Iterator[str]:
        yield ", ".join(f"{quoted(file.file_name, 40)} {file.bytes} bytes" for file in self.files[:2])
        yield from super()._details()


def _wish(p: UploadParams, files: tuple[UploadFile, ...]) -> Wish:
    """A refusal may name the call again, but never the folders in it."""
    wish = wish_of(p)
    return replace(wish, call={**(wish.call or {}), "paths": [file.short for file in files]})


@tool(
    title="Upload files",
    effect="act",
    bundles=("form_submission",),
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + _READING_MS,
    private_arguments=("paths",),
    guards=reserves,
)
async def file_upload(ctx: ToolContext, p: UploadParams) -> UploadResult:
    """Puts files into a file input, or presses the button that asks for them, and reads the input back."""
    ctx.tab.require_ready()
    staged = await ctx.browser.staging.begin(ctx.tab)
    try:
        own = OwnFiles(ctx.settings.data_dir, ctx.caller.principal)
        files = await read_files(p.paths, ctx.settings.upload_roots, staged.folder, own)
        guard = CallGuard(ctx, _wish(p, files))
        uploaded = await upload(ctx.tab, p.element(), files, manner_of(p, guard), ctx.ports)
    finally:
        # Paths stay out of the ledger, however harmless the field is.
        ctx.evidence.input_is_harmless = False
        if not ctx.evidence.action_dispatched:
            with anyio.CancelScope(shield=True):
                await ctx.browser.staging.drop(staged)
    known = Judgement(uploaded.verdict, differs_reason="upload.type_not_accepted")
    return widened(
        await tell(ctx, guard, uploaded.acted, Answering(f"put {len(files)} file(s) into", known, supplies=True)),
        UploadResult,
        files=[FileSent(file_name=file.file_name, bytes=file.size, sha256=file.sha256) for file in files],
        accepted=uploaded.accepted,
    )
