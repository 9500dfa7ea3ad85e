// Cycles of a state graph, folded: the nodes of a strongly connected part become one node.
import type { Graph } from "./api";

type Id = Graph["nodes"][number]["id"];

export type Folded = Graph["nodes"][number] & {
  /** The nodes that this node stands for. */
  members?: Id[];
};

/** The strongly connected parts with more than one node (Tarjan 1972, without recursion: graphs are deep). */
export function cycles(graph: Pick<Graph, "nodes" | "edges">): Id[][] {
  const after = new Map<Id, Id[]>(graph.nodes.map(({ id }) => [id, []]));
  for (const { from, to } of graph.edges) after.get(from)?.push(to);
  const order = new Map<Id, number>();
  const low = new Map<Id, number>();
  const open: Id[] = [];
  const inside = new Set<Id>();
  const found: Id[][] = [];
  for (const { id: start } of graph.nodes) {
    if (order.has(start)) continue;
    const stack = [{ id: start, next: 0 }];
    while (stack.length) {
      const frame = stack[stack.length - 1] as { id: Id; next: number };
      const { id } = frame;
      if (frame.next === 0) {
        order.set(id, order.size);
        low.set(id, order.get(id) as number);
        open.push(id);
        inside.add(id);
      }
      const to = after.get(id)?.[frame.next++];
      if (to !== undefined) {
        if (!order.has(to)) stack.push({ id: to, next: 0 });
        else if (inside.has(to)) low.set(id, Math.min(low.get(id) as number, order.get(to) as number));
        continue;
      }
      stack.pop();
      const parent = stack[stack.length - 1]?.id;
      if (parent !== undefined) low.set(parent, Math.min(low.get(parent) as number, low.get(id) as number));
      if (low.get(id) !== order.get(id)) continue;
      const part = open.splice(open.indexOf(id));
      for (const one of part) inside.delete(one);
      if (part.length > 1) found.push(part);
    }
  }
  return found;
}

/** The graph with its cycles folded, except for those that contain one of the nodes in `unfolded`. */
export function folded(graph: Graph, unfolded: ReadonlySet<Id>): Graph & { nodes: Folded[] } {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const name = new Map<Id, Id>();
  const made: Folded[] = [];
  for (const members of cycles(graph)) {
    if (members.some((id) => unfolded.has(id))) continue;
    const some = members.flatMap((id) => nodes.get(id) ?? []);
    const nearest = some.reduce((best, node) => (node.run.steps.length < best.run.steps.length ? node : best));
    const sum = (count: (node: Graph["nodes"][number]) => number): number =>
      some.reduce((all, node) => all + count(node), 0);
    const id = `cycle ${nearest.id}`;
    for (const member of members) name.set(member, id);
    made.push({
      ...nearest,
      id,
      label: `cycle of ${members.length} nodes`,
      count: sum((node) => node.count),
      initial: some.some((node) => node.initial),
      terminal: sum((node) => Number(node.terminal)),
      violating: sum((node) => Number(node.violating)),
      members,
    });
  }
  const edges = new Map<string, Graph["edges"][number]>();
  for (const edge of graph.edges) {
    const from = name.get(edge.from) ?? edge.from;
    const to = name.get(edge.to) ?? edge.to;
    if (from === to && name.has(edge.from)) continue;
    const key = JSON.stringify([from, to, edge.label]);
    const known = edges.get(key);
    edges.set(key, { from, to, label: edge.label, count: edge.count + (known?.count ?? 0) });
  }
  return { ...graph, nodes: [...graph.nodes.filter(({ id }) => !name.has(id)), ...made], edges: [...edges.values()] };
}
