// Exports that need no server: SVG, PNG, Mermaid and plain text.
import { render } from "preact";
import diagramStyles from "../../src/plait/report/assets/space_time.css";
import { Drawing, Heads } from "./diagram/drawing";
import type { Run } from "./run/run";
import { visible } from "./run/values";
import { FAULTS, messageText, modelText, plural } from "./run/wording";
import ownStyles from "./style/diagram.css";
import type { Viewer } from "./viewer-state";

const MOST_PIXELS = 16_000;

/** The whole diagram as a file, with the lanes and steps that are shown. */
export function svg(viewer: Viewer): string {
  const holder = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const none = { step: null, matches: new Set<number>(), notes: viewer.view.notes };
  const { width, height } = size(viewer);
  let x = 0;
  render(
    viewer.layouts.map((layout, i) => {
      const left = x;
      x += layout.width;
      return (
        <g transform={`translate(${left} 0)`} key={i}>
          <Drawing layout={layout} part={{ top: 0, bottom: layout.height }} marks={none} />
          <Heads layout={layout} />
        </g>
      );
    }),
    holder,
  );
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = diagramStyles + ownStyles;
  holder.prepend(style);
  holder.setAttribute("class", "plait-diagram");
  holder.setAttribute("viewBox", `0 0 ${width} ${height}`);
  holder.setAttribute("width", String(width));
  holder.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(holder);
}

/** The size of all drawings, side by side. */
function size({ layouts }: Viewer): { width: number; height: number } {
  const width = layouts.reduce((sum, layout) => sum + layout.width, 0);
  return { width, height: Math.max(...layouts.map((layout) => layout.height)) };
}

export async function png(viewer: Viewer): Promise<Blob> {
  const { width, height } = size(viewer);
  const scale = Math.min(2, MOST_PIXELS / height, MOST_PIXELS / width);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg(viewer))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) => {
    canvas.toBlob(
      (blob) => (blob ? done(blob) : fail(new Error("the browser cannot make so large a picture"))),
      "image/png",
    );
  });
}

/** Text that Mermaid takes literally. */
const plain = (raw: string): string => visible(raw).replace(/[;#:<>{}"%]/g, (c) => `#${c.charCodeAt(0)};`);

/** A sequence diagram. A message is drawn where it is taken: Mermaid's arrows have no duration. */
export function mermaid(run: Run, hidden: ReadonlySet<string> = new Set()): string {
  const lanes = run.trace.lanes.filter(({ name }) => !hidden.has(name));
  const ids = new Map(lanes.map(({ name }, i) => [name, `p${i}`]));
  const lines = ["sequenceDiagram", ...lanes.map(({ name }, i) => `  participant p${i} as ${plain(name)}`)];
  for (let step = 1; step <= run.last; step++) {
    const event = run.event(step);
    const at = event && ids.get(event.lane);
    if (!event || !at) continue;
    for (const id of event.consumed) {
      const m = run.messages.get(id);
      const from = m && ids.get(m.sender);
      const arrow = event.kind === "lose" || event.kind === "crash" ? "-x" : "->>";
      if (m && from) lines.push(`  ${from}${arrow}${at}: ${plain(messageText(m))}`);
    }
    const fault = FAULTS[event.kind] ? `${event.kind} ` : "";
    const label = event.label === event.kind ? "" : event.label;
    lines.push(`  Note over ${at}: ${plain(`${run.number(step)}. ${fault}${label}`.trim())}`);
  }
  return `${lines.join("\n")}\n`;
}

/** The steps as text, as `plait check` prints them. */
export function plainText(run: Run, notes: Record<number, string> = {}): string {
  const numbers = Array.from({ length: run.last + 1 }, (_, step) => run.number(step));
  const wide = Math.max(...numbers.map((number) => number.length));
  const lines = [`${modelText(run.trace)}: ${plural(run.last, "step")}`, ""];
  for (let step = 0; step <= run.last; step++) {
    lines.push(`${numbers[step]?.padStart(wide)}  ${run.title(step)}`);
    for (const [verb, what, whose] of run.details(step))
      lines.push(`${" ".repeat(wide + 4)}${verb.padEnd(9)} ${whose ? `${whose}: ` : ""}${what}`);
    if (notes[step]) lines.push(`${" ".repeat(wide + 4)}${"note".padEnd(9)} ${notes[step]}`);
  }
  const { loop } = run.trace;
  if (loop !== null) lines.push(`back to step ${loop + 1}: steps ${loop + 1}–${run.last} repeat`);
  return `${lines.join("\n")}\n`;
}

export function download(name: string, content: Blob | string): void {
  const blob = typeof content === "string" ? new Blob([content], { type: "text/plain;charset=utf-8" }) : content;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
