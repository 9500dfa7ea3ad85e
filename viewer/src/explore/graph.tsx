// The state graph, collapsed by a projection to chosen fields, processes or an expression. A worker lays it out.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { visible } from "../run/values";
import { plural, shorten } from "../run/wording";
import type { Graph as Data } from "./api";
import { arrange, type Placed } from "./arrange";
import type { Walk } from "./walk";

const MOST = 400;
/** A graph is made smaller to fit, but not smaller than this. */
const LEAST = 0.6;

type By = "fields" | "lanes" | "expression" | "states";

function Projection({ walk, ask }: { walk: Walk; ask: (projection: Record<string, unknown>) => void }): JSX.Element {
  const { lanes } = walk.model;
  const state = walk.viewer.run.state(0);
  const fields = [
    ...new Set(
      lanes.flatMap(({ name, role }) => Object.keys(state.fields[name] ?? {}).map((field) => `${role}.${field}`)),
    ),
  ];
  const [by, setBy] = useState<By>("states");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [expression, setExpression] = useState("");
  const options = by === "fields" ? fields : by === "lanes" ? lanes.map((lane) => lane.name) : [];
  const submit = (event: Event): void => {
    event.preventDefault();
    if (by === "expression") ask({ expression });
    else if (by === "states") ask({});
    else ask({ [by]: [...chosen].filter((one) => options.includes(one)) });
  };
  const toggle = (one: string): void => {
    const next = new Set(chosen);
    if (!next.delete(one)) next.add(one);
    setChosen(next);
  };
  return (
    <form class="projection" onSubmit={submit}>
      <label>
        A node is{" "}
        <select value={by} onChange={(event) => setBy(event.currentTarget.value as By)}>
          <option value="states">every state</option>
          <option value="fields">states with equal fields</option>
          <option value="lanes">states with equal processes</option>
          <option value="expression">states with an equal value of an expression</option>
        </select>
      </label>
      {by === "expression" && (
        <input
          type="text"
          required
          aria-label="a Python expression over the view s"
          placeholder="a Python expression over s"
          spellcheck={false}
          value={expression}
          onInput={(event) => setExpression(event.currentTarget.value)}
        />
      )}
      {options.length > 0 && (
        <div class="choices">
          {options.map((one) => (
            <label key={one}>
              <input type="checkbox" checked={chosen.has(one)} onChange={() => toggle(one)} />
              {visible(one)}
            </label>
          ))}
        </div>
      )}
      <button type="submit">Draw</button>
    </form>
  );
}

function Picture({ walk, placed, wide }: { walk: Walk; placed: Placed; wide: number }): JSX.Element {
  const { width, height, nodes, edges } = placed;
  const zoom = walk.viewer.view.zoom ?? Math.min(1, Math.max(LEAST, wide / width));
  const open = (node: Placed["nodes"][number]): void => {
    walk.viewer.set({ page: "diagram" });
    void walk.open(node.run);
  };
  const press = (event: KeyboardEvent, node: Placed["nodes"][number]): void => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    open(node);
  };
  return (
    <svg
      class="plait-graph"
      viewBox={`0 0 ${width} ${height}`}
      width={width * zoom}
      height={height * zoom}
      role="group"
      aria-label="state graph"
    >
      {edges.map((edge, i) => (
        <g class="edge" key={i}>
          <title>{`${visible(edge.label)}${edge.count > 1 ? `, ${plural(edge.count, "transition")}` : ""}`}</title>
          <path class="line" d={edge.path} />
          <path class="tip" d={edge.tip} />
          {edge.text && (
            <text x={edge.text.x} y={edge.text.y}>
              {shorten(visible(edge.label), 28)}
            </text>
          )}
        </g>
      ))}
      {nodes.map((node) => (
        <g
          class={`node${node.initial ? " initial" : ""}${node.terminal ? " terminal" : ""}${node.violating ? " violating" : ""}`}
          role="button"
          tabIndex={0}
          onClick={() => open(node)}
          onKeyDown={(event) => press(event, node)}
          key={node.id}
        >
          <title>
            {[
              visible(node.label),
              node.initial && "initial",
              node.terminal && "terminal",
              node.violating && "violating",
            ]
              .filter(Boolean)
              .join(", ")}
          </title>
          <rect x={node.x} y={node.y} width={node.width} height={node.height} rx="6" />
          {node.terminal && (
            <rect class="inner" x={node.x + 3} y={node.y + 3} width={node.width - 6} height={node.height - 6} rx="4" />
          )}
          {node.lines.map((line, i) => (
            <text x={node.x + node.width / 2} y={node.y + 16 + 13 * i} text-anchor="middle" key={line}>
              {line}
            </text>
          ))}
        </g>
      ))}
    </svg>
  );
}

export function GraphPage({ walk }: { walk: Walk }): JSX.Element {
  const [placed, setPlaced] = useState<Placed | null>(null);
  const [found, setFound] = useState<Data | null>(null);
  const [said, setSaid] = useState("Choose what a node is, then Draw. A small space can be drawn whole.");
  const alive = useRef(true);
  const scroll = useRef<HTMLElement>(null);
  const [wide, setWide] = useState(800);
  useLayoutEffect(() => {
    const pane = scroll.current;
    if (!placed || !pane) return;
    setWide(pane.clientWidth - 24);
    const start = placed.nodes.find((node) => node.initial);
    if (start) pane.scrollLeft = (start.x + start.width / 2) * (pane.scrollWidth / placed.width) - pane.clientWidth / 2;
  }, [placed]);
  useEffect(
    () => () => {
      alive.current = false;
    },
    [],
  );
  const ask = async (projection: Record<string, unknown>): Promise<void> => {
    setSaid("searching …");
    setPlaced(null);
    try {
      const graph = await walk.api.post<Data>("/api/graph", { from: null, projection, most: MOST });
      if (!alive.current) return;
      setFound(graph);
      setSaid("drawing …");
      const drawn = await arrange(graph, () => walk.api.worker());
      if (!alive.current) return;
      setPlaced(drawn);
      setSaid("");
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  const states = found?.states ?? found?.nodes.reduce((sum, node) => sum + node.count, 0) ?? 0;
  return (
    <section class="graph-page" aria-label="state graph">
      <Projection walk={walk} ask={(projection) => void ask(projection)} />
      <p role="status">
        {said}
        {placed &&
          found &&
          `${plural(found.nodes.length, "node")} and ${plural(found.edges.length, "edge")} for ${plural(states, "state")}. `}
        {found && !found.complete && "The picture is not complete: choose fewer fields. "}
        {found?.note}
      </p>
      {placed && (
        <>
          <section class="graph-scroll" tabIndex={0} aria-label="drawing" ref={scroll}>
            <Picture walk={walk} placed={placed} wide={wide} />
          </section>
          <p class="legend">Thick: initial. Double frame: terminal. Red: violates a property. A click walks there.</p>
        </>
      )}
    </section>
  );
}
