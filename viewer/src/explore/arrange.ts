// The layout of a state graph, by elkjs in a worker, so that the page stays usable.
import ELK, { type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk-api.js";
import { textWidth } from "../diagram/letters";
import { drawn, type Point, tip } from "../diagram/routing";
import { visible } from "../run/values";
import { shorten } from "../run/wording";
import type { Graph } from "./api";
import type { Folded } from "./fold";

export interface Placed {
  width: number;
  height: number;
  nodes: (Folded & { x: number; y: number; width: number; height: number; lines: string[] })[];
  edges: {
    label: string;
    count: number;
    path: string;
    tip: string;
    text: { x: number; y: number; said: string } | null;
  }[];
}

let elk: { layout: (graph: ElkNode) => Promise<ElkNode> } | undefined;

/** The lines of a node: its label, and how many states it stands for. */
function nodeLines(label: string, count: number): string[] {
  const lines = visible(label.replace(/\n/g, "; "))
    .split("; ")
    .slice(0, 6)
    .map((line) => shorten(line, 40));
  return count > 1 ? [...lines, `${count.toLocaleString("en")} states`] : lines;
}

function nodeSize(lines: string[]): { width: number; height: number } {
  return { width: Math.max(40, ...lines.map((line) => textWidth(line, 11) + 18)), height: 13 * lines.length + 11 };
}

/** Edges between the same nodes are one line, with the names of all handlers. */
export function merged(edges: Graph["edges"]): Graph["edges"] {
  const found = new Map<string, Graph["edges"][number]>();
  for (const edge of edges) {
    const name = `${edge.from} ${edge.to}`;
    const known = found.get(name);
    found.set(
      name,
      known ? { ...known, label: `${known.label}, ${edge.label}`, count: known.count + edge.count } : edge,
    );
  }
  return [...found.values()];
}

/** What is written at a line. Many handlers stay in a node, so their names have no room there. */
function edgeText({ from, to, label }: Graph["edges"][number]): string {
  const names = label.split(", ");
  return from === to && names.length > 1 ? `${names.length} handlers` : shorten(visible(label), 28);
}

export async function arrange(raw: Graph & { nodes: Folded[] }, worker: () => Promise<Worker>): Promise<Placed> {
  const graph = { ...raw, edges: merged(raw.edges) };
  if (!elk) {
    const made = await worker();
    elk = new ELK({ workerFactory: () => made });
  }
  const sized = new Map(
    graph.nodes.map((node) => {
      const lines = nodeLines(node.label, node.count);
      return [String(node.id), { ...node, lines, ...nodeSize(lines) }];
    }),
  );
  const labelled = graph.edges.length <= 300;
  const result = await elk.layout({
    id: "graph",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": "DOWN",
      "elk.layered.spacing.nodeNodeBetweenLayers": "46",
      "elk.spacing.nodeNode": "26",
      "elk.edgeRouting": "POLYLINE",
      "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
    },
    children: [...sized].map(([id, { width, height }]) => ({ id, width, height })),
    edges: graph.edges.map((edge, i) => ({
      id: `e${i}`,
      sources: [String(edge.from)],
      targets: [String(edge.to)],
      labels:
        labelled && edge.label ? [{ text: edgeText(edge), width: textWidth(edgeText(edge), 10), height: 12 }] : [],
    })),
  });
  return {
    width: (result.width ?? 0) + 4,
    height: (result.height ?? 0) + 4,
    nodes: (result.children ?? []).flatMap((child) => {
      const node = sized.get(child.id);
      return node ? [{ ...node, x: child.x ?? 0, y: child.y ?? 0 }] : [];
    }),
    edges: (result.edges ?? []).map((edge: ElkExtendedEdge, i) => {
      const section = edge.sections?.[0];
      const points: Point[] = section
        ? [section.startPoint, ...(section.bendPoints ?? []), section.endPoint].map(({ x, y }): Point => [x, y])
        : [
            [0, 0],
            [0, 0],
          ];
      const label = edge.labels?.[0];
      const { label: text = "", count = 1 } = graph.edges[i] ?? {};
      return {
        label: text,
        count,
        path: drawn({ kind: "path", points }),
        tip: tip(points.at(-1) as Point, points.at(-2) as Point),
        text: label ? { x: label.x ?? 0, y: (label.y ?? 0) + 10, said: label.text ?? "" } : null,
      };
    }),
  };
}
