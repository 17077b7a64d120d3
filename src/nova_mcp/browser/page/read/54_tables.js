// Tables as rows and columns: real ones, and those that only say they are.
const TABLE_ROLES = new Set(["table", "grid"]);
const PRESENTED = /^\s*(presentation|none)\b/i;
const isTable = (el) => {
  const given = attr(el, "role");
  return tagOf(el) === "table" ? !PRESENTED.test(given ?? "") : TABLE_ROLES.has((given ?? "").trim().toLowerCase());
};
const MAX_SPAN_COLS = 1000;
const MAX_TABLES_SEEN = 2000;

const tablesIn = (root) => {
  const found = [];
  walk(root, (el) => {
    if (IGNORED.has(tagOf(el))) return "skip";
    if (isTable(el) && found.length < MAX_TABLES_SEEN) found.push(el);
    return undefined;
  });
  return found;
};

const inHead = (row) => {
  const group = composedParent(row);
  return group !== null && tagOf(group) === "thead";
};

// Rows in the order they are shown: the head first and the foot last, wherever they stand in the source.
const tableRowsOf = (table) => {
  const [head, body, foot] = [[], [], []];
  const visit = (el, level, into) => {
    for (const child of composedChildren(el)) {
      if (!isElement(child) || level > 30) continue;
      const tag = tagOf(child);
      if (isRow(child, tag)) into.push(child);
      else if (!isTable(child) && !SKIPPED.has(tag)) visit(child, level + 1, tag === "thead" ? head : tag === "tfoot" ? foot : into);
    }
  };
  visit(table, 0, body);
  return [...head, ...body, ...foot];
};

const rowCellsOf = (row) => {
  const cells = [];
  const visit = (el, level) => {
    for (const child of composedChildren(el)) {
      if (!isElement(child) || level > 30 || cells.length >= MAX_SPAN_COLS) continue;
      if (isCell(child)) cells.push(child);
      else if (!isTable(child) && !SKIPPED.has(tagOf(child))) visit(child, level + 1);
    }
  };
  visit(row, 0);
  return cells;
};

const spanOf = (el, plain, most) => {
  const given = attr(el, plain) ?? attr(el, `aria-${plain}`);
  return given !== null && /^\s*\d{1,6}/.test(given) ? Math.min(parseInt(given, 10), most) : 1;
};
const isHeading = (el) => (tagOf(el) === "th" && attr(el, "scope") !== "row") || explicitRole(el) === "columnheader";
const shownCell = (el) => styleOf(el).display !== "none" && rendered(el);

// Cells in their columns; a cell that spans several rows or columns stands in each of them.
class Layout {
  constructor(read, maxCols) {
    Object.assign(this, { read, maxCols, carried: [], columns: 0 });
  }

  row(cells, wanted, groupRows) {
    const texts = [];
    let column = 0;
    const put = (text) => {
      if (wanted && column < this.maxCols) texts[column] = text();
      column += 1;
      this.columns = Math.max(this.columns, column);
    };
    const fromAbove = () => {
      const above = this.carried[column];
      if (!(above?.rows > 0)) return false;
      above.rows -= 1;
      put(above.text);
      return true;
    };
    for (const cell of cells) {
      while (fromAbove());
      const across = Math.max(1, spanOf(cell, "colspan", MAX_SPAN_COLS));
      const down = spanOf(cell, "rowspan", 65534) || groupRows;
      let known;
      const text = () => (known ??= this.read(cell));
      for (let i = 0; i < across && column < MAX_SPAN_COLS; i += 1) {
        this.carried[column] = { rows: down - 1, text };
        put(text);
      }
    }
    while (column < this.carried.length) if (!fromAbove()) column += 1;
    return Array.from(texts, (text) => text ?? "");
  }

  newGroup() {
    this.carried = [];
  }
}

const captionOf = (table) => {
  if (tagOf(table) === "table")
    for (let node = firstChild(table); node !== null; node = nextSibling(node))
      if (isElement(node) && tagOf(node) === "caption") return readElement(node, { plain: true });
  return nameOf(table, "table");
};

// Several rows of headings become one: what stands above comes first.
const joinedHeads = (rows) => {
  const joined = [];
  for (const row of rows)
    row.forEach((text, column) => {
      const above = joined[column] ?? "";
      joined[column] = above === "" || above === text ? text : text === "" ? above : `${above} / ${text}`;
    });
  return Array.from(joined, (text) => text ?? "");
};

// The first row counts as headings when nothing else stands in it; a table without any has none.
const headCount = (rows) => {
  const heads = rows.findIndex((row) => !inHead(row));
  if (heads !== 0) return heads === -1 ? rows.length : heads;
  const first = rows.length > 1 ? rowCellsOf(rows[0]).filter(shownCell) : [];
  return first.length > 0 && first.every(isHeading) ? 1 : 0;
};

// Rows up to the last one asked for; those after it are only counted.
const laidOut = (rows, layout, wanted, deadline) => {
  const told = [];
  let group = null;
  for (let i = 0; i < rows.length; i += 1) {
    const own = tagOf(rows[i]) === "tr" ? composedParent(rows[i]) : group;
    if (own !== group) layout.newGroup();
    group = own;
    const asked = wanted(i, told.length);
    const passed = !asked && told.length > 0;
    if (passed && now() > deadline) break;
    const cells = rowCellsOf(rows[i]);
    const texts = layout.row(passed ? cells : cells.filter(shownCell), asked, rows.length - i);
    if (asked) told.push(texts);
  }
  return told;
};

const readTable = (table, want, room) => {
  const { budget, known } = room;
  let shortened = false;
  const read = (cell) => {
    const text = squash(readElement(cell, { plain: true, budget, known, skip: (el) => el !== cell && isTable(el) }));
    shortened ||= text.length > want.maxCellChars;
    const kept = cut(text, want.maxCellChars);
    room.chars -= kept.length + 3;
    return kept;
  };
  const rows = tableRowsOf(table).filter((row) => rendered(row) || styleOf(row).display === "contents");
  const heads = headCount(rows);
  const layout = new Layout(read, want.maxCols);
  const headings = laidOut(rows.slice(0, heads), layout, () => true, budget.deadline);
  layout.newGroup();
  const asked = (i, told) =>
    i >= want.offsetRow && told < want.maxRows && (told === 0 || (i === want.offsetRow + told && room.chars > 0 && now() < budget.deadline));
  const told = laidOut(rows.slice(heads), layout, asked, budget.deadline);
  const rowCount = rows.length - heads;
  const declared = Number(attr(table, "aria-rowcount")) || 0;
  return {
    caption: cut(squash(captionOf(table)), 300), headers: joinedHeads(headings), rows: told, rowCount, colCount: layout.columns,
    declaredRows: declared > rows.length ? declared : 0,
    truncated: want.offsetRow + told.length < rowCount || layout.columns > want.maxCols || shortened || declared > rows.length,
  };
};

const tablesFor = (node) => {
  if (node === null) return tablesIn(documentBody(DOC) ?? DOC);
  const el = nodeOf(node);
  if (el === null || !isConnected(el)) return null;
  const inside = tablesIn(el);
  if (inside.length) return inside;
  const around = closest(el, isTable);
  return around === null ? [] : [around];
};

questions.tables = (want) => {
  const place = framePlace();
  if (!place.inline && want.node === null) return { inline: false };
  const found = tablesFor(want.node);
  if (found === null) return { inline: true, gone: true };
  const places = makePlaces();
  const known = new Map();
  const seen = (el) => {
    const around = sightAround(el, known);
    return around !== null && sightOf(el, styleOf(el), around) !== null;
  };
  const shown = place.shown === false ? [] : found.filter(seen);
  const room = { chars: want.chars, budget: newBudget(), known };
  const tables = shown.slice(0, want.maxTables).map((el, index) => ({ index, element: factsOf(el, places), ...readTable(el, want, room) }));
  const told = { inline: true, url: pageAddress(), tableCount: shown.length, tables, scanTruncated: room.budget.truncated };
  return JSON.stringify({ ...told, chars: room.chars });
};
