// Tables of a page: a click on a head sorts, and long tables have a filter. Without script they are plain tables.

/** A table with at least this many rows has a filter. */
const LONG = 12;

const number = (text: string): number => Number(text.replace(/[,\s]/g, "").replace(/[^\d.+-].*$/, "") || Number.NaN);

const collator = new Intl.Collator("en", { numeric: true });

/** Numbers by their value, before texts in the order of the alphabet. */
export function compare(one: string, other: string): number {
  const [a, b] = [number(one), number(other)];
  if (!Number.isNaN(a) && !Number.isNaN(b)) return a - b || collator.compare(one, other);
  if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
  return collator.compare(one, other);
}

export function tables(root: ParentNode): void {
  for (const table of root.querySelectorAll<HTMLTableElement>("table.sortable")) {
    const body = table.tBodies[0];
    if (!body) continue;
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    const text = (row: HTMLTableRowElement, column: number): string => row.cells[column]?.textContent ?? "";
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.ariaSort === "ascending";
        for (const other of heads) other.ariaSort = null;
        head.ariaSort = down ? "descending" : "ascending";
        const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * compare(text(a, column), text(b, column)));
        body.append(...rows);
      });
    });
    if (body.rows.length < LONG) continue;
    const search = document.createElement("input");
    search.type = "search";
    search.placeholder = "Filter";
    search.ariaLabel = "Filter the rows of this table";
    const count = document.createElement("output");
    const all = body.rows.length;
    const filter = (): void => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of body.rows) {
        const said = (row.textContent ?? "").toLowerCase();
        row.hidden = !words.every((word) => said.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = words.length ? `${shown} of ${all} rows` : "";
    };
    search.addEventListener("input", filter);
    const bar = document.createElement("p");
    bar.className = "table-filter";
    bar.append(search, count);
    table.before(bar);
  }
}
