// The layout of a state graph, by elkjs in a worker, so that the page stays usable.
import ELK, { type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk-api.js";
import { textWidth } from "../diagram/layout";
import { drawn, type Point, tip } from "../diagram/routing";
import type { Graph } from "./api";
import { nodeLines, nodeSize } from "./graph";

export interface Placed {
  width: number;
  height: number;
  nodes: (Graph["nodes"][number] & { x: number; y: number; width: number; height: number; lines: string[] })[];
  edges: { label: string; count: number; path: string; tip: string; text: { x: number; y: number } | null }[];
}

let elk: { layout: (graph: ElkNode) => Promise<ElkNode> } | undefined;

export async function arrange(graph: Graph): Promise<Placed> {
  elk ??= new ELK({ workerFactory: () => new Worker("elk-worker.js") });
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
        labelled && edge.label
          ? [{ text: edge.label, width: Math.min(170, textWidth(edge.label, 10)), height: 12 }]
          : [],
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
        text: label ? { x: label.x ?? 0, y: (label.y ?? 0) + 10 } : null,
      };
    }),
  };
}
