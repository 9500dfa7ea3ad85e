"""A classification of transactions as one self-contained HTML file: classes, the conflict graph, all entries.

The page is complete without its script. The script shows the conflicts of the transaction under the pointer.
"""

from __future__ import annotations

from plait.kernel.classification import Access, Classification, Operation
from plait.report.classification.conflict_graph import conflict_svg
from plait.report.classification.text import blocker_lines, cost, effort, refusals, routed
from plait.report.markup import asset, escape
from plait.report.viewer import head
from plait.report.wording import plural, visible

_SCRIPT = """
for (const svg of document.querySelectorAll('.plait-conflicts')) {
  for (const node of svg.querySelectorAll('.transaction')) {
    node.addEventListener('mouseenter', () => {
      svg.classList.add('chosen');
      for (const c of svg.querySelectorAll('.conflict'))
        c.classList.toggle('shown', [c.dataset.writer, c.dataset.other].includes(node.dataset.name));
    });
    node.addEventListener('mouseleave', () => svg.classList.remove('chosen'));
  }
}
"""


def classification_page(found: Classification) -> str:
    """The report of `plait gyro analyze --html`."""
    title = f"Operations of {visible(found.application)}"
    counts = "".join(f"<div><b>{found.count(c)}</b> {c}</div>" for c in ("local", "global", "local/global"))
    warnings = "".join(f'<p class="warning">{escape(visible(w))}</p>' for w in found.warnings)
    read_only = sum(o.read_only for o in found.operations)
    body = [
        '<body class="plain"><header class="summary">',
        f'<h1><span class="subject">{escape(title)}</span></h1>',
        f'<p class="claim">{plural(len(found.operations), "transaction")}, {read_only} read-only. '
        f"{escape(cost(found))} {escape(effort(found))}</p>",
        f'<div class="counts">{counts}</div>{warnings}</header><main>',
        '<section class="panel"><h2>Transactions</h2>',
        _table(found),
        '</section><section class="panel"><h2>Conflicts</h2><p class="legend">Solid line: the two operations may run '
        "at different servers, so the writer is global or local/global. Dashed line: a common key routes both "
        "operations to the same server.</p>",
        conflict_svg(found, standalone=False),
        '</section><section class="panel"><h2>Reasons, and read and write sets</h2>',
        *(_details(o) for o in sorted(found.operations, key=lambda o: o.classed == "local")),
        f"</section></main><script>{_SCRIPT}</script></body>",
    ]
    return "\n".join([*head(title, script=False, styles=asset("classification.css")), *body, "</html>", ""])


def _table(found: Classification) -> str:
    rows = "".join(
        f'<tr><td><code>{escape(visible(o.name))}</code></td><td class="{o.classed.replace("/", "-")}">{o.classed}</td>'
        f"<td><code>{escape(visible(routed(o)))}</code></td><td>{escape(visible(o.reason))}</td></tr>"
        for o in found.operations
    )
    return f'<table class="classes"><tr><th>transaction</th><th>class</th><th>routed by</th><th>why</th></tr>{rows}</table>'


def _details(operation: Operation) -> str:
    short = operation.classed != "local" and (len(operation.blockers) < 4 or operation.refused)
    parts = [
        f"<details{' open' if short else ''}><summary><code>"
        f"{escape(visible(operation.name))}({escape(visible(', '.join(operation.parameters)))})</code> is "
        f"{operation.classed}</summary>"
    ]
    parts += [
        f'<p class="warning">{escape(reason)}<br><span class="change">{escape(change)}</span></p>'
        for reason, change in refusals(operation)
    ]
    if operation.blockers and operation.classed != "local":
        parts.append("<h3>Conflicts that prevent local execution</h3><ul>")
        for blocker in operation.blockers:
            first, *rest, change = blocker_lines(operation, blocker)
            where = "<br>".join(escape(line.strip()) for line in rest)
            parts.append(
                f'<li>{escape(first)}<br><span class="where">{where}</span><br>'
                f'<span class="change">{escape(change.strip())}</span></li>'
            )
        parts.append("</ul>")
    for heading, entries in (("Reads", operation.reads), ("Writes", operation.writes)):
        if entries:
            parts.append(f"<h3>{heading}</h3><ul>{''.join(_entry(e) for e in entries)}</ul>")
    parts.append(
        "<h3>Statements</h3><ul>" + "".join(f"<li><code>{escape(visible(s))}</code></li>" for s in operation.statements)
    )
    return "".join([*parts, "</ul></details>"])


def _entry(entry: Access) -> str:
    attributes = ", ".join("the row" if a == "*" else a for a in entry.attributes)
    return (
        f"<li><code>{escape(visible(entry.table))}</code>: {escape(visible(attributes))} <span class='where'>where "
        f"{escape(visible(entry.condition))} ({escape(entry.role)}, {escape(visible(entry.place))})</span></li>"
    )
