"""Tables as data: spans, headings, grids, pieces, and what people can't see left out."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.read.table import TableRequest, extract_tables
from nova_mcp.browser.read.text import ReadRequest, read_text
from nova_mcp.errors import NotFound

pytestmark = pytest.mark.browser


async def tables(tab, site, body, **how):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    return await extract_tables(tab, TableRequest(**how))


async def only(tab, site, body, **how):
    report = await tables(tab, site, body, **how)
    assert report.table_count == 1
    return report.tables[0]


async def test_caption_headings_and_rows_are_told_apart(module_tab, site):
    table = await only(
        module_tab,
        site,
        "<table><caption>Teas</caption><tfoot><tr><td>All<td>9</tfoot><thead><tr><th>Kind<th>Price</thead>"
        "<tr><td>Sencha <a href=/s>more</a><td>4<tr><td><p>Oolong</p><p>dark</p><td><input value=5></table>",
    )
    assert (table.caption, table.headers) == ("Teas", ("Kind", "Price"))
    assert table.rows == (("Sencha more", "4"), ("Oolong dark", ""), ("All", "9"))
    assert (table.row_count, table.col_count, table.truncated) == (3, 2, False)


async def test_a_first_row_of_headings_counts_as_such_and_a_table_without_has_none(module_tab, site):
    first = await only(module_tab, site, "<table><tr><th>A<th>B<tr><td>1<td>2</table>")
    none = await only(module_tab, site, "<table><tr><th>A<td>1<tr><th>B<td>2</table>")
    assert (first.headers, first.rows) == (("A", "B"), (("1", "2"),))
    assert (none.headers, none.rows) == ((), (("A", "1"), ("B", "2")))


async def test_cells_that_span_stand_in_every_place_they_cover(module_tab, site):
    table = await only(
        module_tab,
        site,
        "<table><thead><tr><th rowspan=2>Name<th colspan=2>Size<tr><th>W<th>H</thead>"
        "<tr><td rowspan=2>a<td>1<td rowspan=0>2<tr><td>3<tr><td colspan=2>b</table>",
    )
    assert table.headers == ("Name", "Size / W", "Size / H")
    assert table.rows == (("a", "1", "2"), ("a", "3", "2"), ("b", "b", "2"))


async def test_spans_of_one_part_do_not_reach_into_the_next(module_tab, site):
    table = await only(
        module_tab, site, "<table><thead><tr><th rowspan=9>A<th>B</thead><tbody><tr><td>1<td>2</tbody></table>"
    )
    assert table.rows == (("1", "2"),)


async def test_monstrous_spans_stay_within_bounds(module_tab, site):
    table = await only(
        module_tab, site, "<table><tr><td colspan=99999 rowspan=99999>x<td>y<tr><td>z</table>", max_cols=3
    )
    assert table.rows == (("x", "x", "x"), ("x", "x", "x"))
    assert (table.col_count, table.truncated) == (1000, True)


async def test_a_nested_table_is_a_table_of_its_own(module_tab, site):
    report = await tables(
        module_tab, site, "<table><tr><td>outer <table><tr><td>inner</table><td>rest</table><table><tr><td>next</table>"
    )
    assert [table.rows for table in report.tables] == [(("outer", "rest"),), (("inner",),), (("next",),)]
    assert [table.index for table in report.tables] == [0, 1, 2]


async def test_grids_made_of_other_elements_are_read_and_say_how_many_rows_there_are(module_tab, site):
    table = await only(
        module_tab,
        site,
        "<div role=grid aria-label=Stock aria-rowcount=500><div><div role=row><b role=columnheader>Item</b>"
        "<b role=columnheader>Left</b></div></div><div role=rowgroup><div role=row><i role=rowheader>Spade</i>"
        "<i role=gridcell>3</i></div><div role=row><i role=gridcell aria-colspan=2>none</i></div></div></div>",
    )
    assert (table.caption, table.headers) == ("Stock", ("Item", "Left"))
    assert table.rows == (("Spade", "3"), ("none", "none"))
    assert (table.row_count, table.declared_rows, table.truncated) == (2, 500, True)


async def test_long_tables_are_read_in_pieces_that_join(module_tab, site):
    body = "<table><tr><th>N</tr>" + "".join(f"<tr><td>{n}" for n in range(25)) + "</table>"
    pieces = [await only(module_tab, site, body, max_rows=10, offset_row=at) for at in (0, 10, 20, 30)]
    assert [row[0] for piece in pieces for row in piece.rows] == [str(n) for n in range(25)]
    assert [piece.truncated for piece in pieces] == [True, True, False, False]
    assert {piece.row_count for piece in pieces} == {25}


async def test_rows_columns_cells_and_tables_are_bounded(module_tab, site):
    body = f"<table><tr><td>{'x' * 50}<td>b<td>c</table>" * 3
    report = await tables(module_tab, site, body, max_tables=2, max_cols=2, max_cell_chars=10)
    assert (report.table_count, len(report.tables)) == (3, 2)
    assert report.tables[0].rows == (("xxxxxxxxx…", "b"),)
    assert (report.tables[0].col_count, report.tables[0].truncated) == (3, True)


async def test_hidden_rows_cells_tables_and_tables_for_layout_are_left_out(module_tab, site):
    table = await only(
        module_tab,
        site,
        "<table role=presentation><tr><td>layout</table><table style='display:none'><tr><td>hidden</table>"
        "<table style='opacity:0'><tr><td>faint</table><table><tr><td>a<td hidden>no<td>b<i style='opacity:0'>no</i>"
        "<tr hidden><td>no</table>",
    )
    assert table.rows == (("a", "b"),)


async def test_one_table_is_named_by_itself_by_what_is_around_it_or_by_a_cell(module_tab, site):
    body = "<table><tr><td>first</table><section id=s><table id=t><tr><td id=c>second</table></section><p id=p>none</p>"
    for selector in ("#t", "#s", "#c"):
        report = await tables(module_tab, site, body, locator=Locator(selector=selector))
        assert [table.rows for table in report.tables] == [(("second",),)]
    ref = report.tables[0].ref
    again = await extract_tables(module_tab, TableRequest(Locator(ref=ref)))
    assert again.tables[0].rows == (("second",),)
    assert (await tables(module_tab, site, body, locator=Locator(selector="#p"))).table_count == 0
    with pytest.raises(NotFound):
        await tables(module_tab, site, body, locator=Locator(selector="#missing"))


async def test_tables_in_shadow_roots_and_frames_are_found(module_tab, site):
    report = await tables(
        module_tab,
        site,
        "<x-t></x-t><iframe srcdoc='<table><tr><td>framed</table>'></iframe><script>document.querySelector('x-t')"
        ".attachShadow({mode: 'open'}).innerHTML = '<table><tr><td>shadow</table>'</script>",
    )
    assert [table.rows for table in report.tables] == [(("shadow",),), (("framed",),)]
    inside = await read_text(module_tab, ReadRequest(Locator(ref=report.tables[1].ref)))
    assert inside.text == "framed"


async def test_no_table_is_an_answer(module_tab, site):
    report = await tables(module_tab, site, "<p>none</p>")
    assert (report.table_count, report.tables) == (0, ())


async def test_clobbered_names_do_not_hide_a_table(module_tab, site):
    body = "<form><input name=rows><input name=children><input name=tagName><input name=role>"
    table = await only(module_tab, site, f"{body}<table id=length><tr id=item><td id=0>x</table></form>")
    assert table.rows == (("x",),)


async def test_a_huge_table_ends_in_time_with_whole_rows(module_tab, site):
    await module_tab.page.goto(site.url("html?body="))
    await module_tab.page.evaluate(
        # Measuring a hundred thousand cells for the widths of columns would take longer than reading them.
        "() => { document.body.innerHTML = '<table style=\"table-layout:fixed;width:3000px\">' +"
        "('<tr>' + '<td>cell</td>'.repeat(50) + '</tr>').repeat(2000);"
        "document.body.offsetHeight }"
    )
    table = (await extract_tables(module_tab, TableRequest(max_rows=5000, max_cols=200))).tables[0]
    assert table.row_count == 2000
    assert table.rows
    assert all(len(row) == 50 for row in table.rows)
    assert table.truncated == (len(table.rows) < 2000)
