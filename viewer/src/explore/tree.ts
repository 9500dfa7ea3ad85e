// The runs that were walked, as a tree: a node is a state that was reached by a step from its parent.
import type { RunKeys } from "../link";

export interface Node {
  key: string;
  /** What the step did, for the reader. */
  label: string;
  parent: Node | null;
  children: Node[];
  note?: string | undefined;
  /** The run up to here repeats for ever: the number of steps before its loop. */
  loop?: number | undefined;
  /** The child that was visited last: where `on` leads. */
  next: Node | null;
}

export function root(initial: number): Node {
  return { key: String(initial), label: `initial state ${initial}`, parent: null, children: [], next: null };
}

/** The nodes from the root to a node. */
export function path(node: Node): Node[] {
  const found: Node[] = [];
  for (let at: Node | null = node; at; at = at.parent) found.push(at);
  return found.reverse();
}

export function depth(node: Node): number {
  let found = 0;
  for (let at = node.parent; at; at = at.parent) found++;
  return found;
}

export function keysOf(node: Node): RunKeys {
  const [first, ...steps] = path(node);
  return {
    initial: Number(first?.key),
    steps: steps.map((step) => step.key),
    ...(node.loop === undefined ? {} : { loop: node.loop }),
  };
}

/** The child with this key. A new one is added. */
export function child(node: Node, key: string, label = key): Node {
  let found = node.children.find((one) => one.key === key);
  if (!found) {
    found = { key, label, parent: node, children: [], next: null };
    node.children.push(found);
  }
  if (label !== key) found.label = label;
  node.next = found;
  return found;
}

/** The end of the branch that was visited last. */
export function tip(node: Node): Node {
  let at = node;
  while (at.next) at = at.next;
  return at;
}

/** Removes a branch. Returns the node to show instead. */
export function cut(node: Node): Node | null {
  const { parent } = node;
  if (!parent) return null;
  parent.children = parent.children.filter((one) => one !== node);
  if (parent.next === node) parent.next = parent.children.at(-1) ?? null;
  return parent;
}

export interface Row {
  node: Node;
  depth: number;
  branch: number;
}

/** The tree as rows: a run without branches is one column, and each further branch is one column to the right. */
export function rows(start: Node): Row[] {
  const found: Row[] = [];
  const stack: Row[] = [{ node: start, depth: 0, branch: 0 }];
  while (stack.length) {
    const row = stack.pop() as Row;
    found.push(row);
    const { children } = row.node;
    for (let i = children.length - 1; i >= 0; i--) {
      stack.push({ node: children[i] as Node, depth: row.depth + 1, branch: row.branch + (i === 0 ? 0 : 1) });
    }
  }
  return found;
}
