// The state graph, collapsed by a projection to chosen fields, processes or an expression. A worker lays it out.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { visible } from "../run/values";
import { plural } from "../run/wording";
import type { Graph as Data } from "./api";
import { arrange, type Placed } from "./arrange";
import { cycles, folded } from "./fold";
import type { Walk } from "./walk";

const MOST = 400;
/** A graph is made smaller to fit, but not smaller than this. */
const LEAST = 0.85;

const MARKS = ["initial", "terminal", "violating"] as const;

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

interface PictureProps {
  walk: Walk;
  placed: Placed;
  wide: number;
  unfold: (members: (number | string)[]) => void;
}

function Picture({ walk, placed, wide, unfold }: PictureProps): JSX.Element {
  const { width, height, nodes, edges } = placed;
  const zoom = walk.viewer.view.zoom ?? Math.min(1, Math.max(LEAST, wide / width));
  const open = (node: Placed["nodes"][number]): void => {
    if (node.members) {
      unfold(node.members);
      return;
    }
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
              {edge.text.said}
            </text>
          )}
        </g>
      ))}
      {nodes.map((node) => (
        <g
          class={["node", ...MARKS.filter((mark) => node[mark]), ...(node.members ? ["folded"] : [])].join(" ")}
          role="button"
          tabIndex={0}
          onClick={() => open(node)}
          onKeyDown={(event) => press(event, node)}
          key={node.id}
        >
          <title>
            {[
              visible(node.label),
              ...MARKS.filter((mark) => node[mark]),
              ...(node.members ? ["folded: a click unfolds it"] : []),
            ].join(", ")}
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

/** What the marks mean that are in the picture. */
function legend({ nodes }: Placed): string {
  const has = (mark: keyof Placed["nodes"][number]): boolean => nodes.some((node) => node[mark]);
  return [
    has("initial") && "Thick: initial.",
    has("terminal") && "Double frame: terminal.",
    has("violating") && "Red: violates a property.",
    has("members") && "Dashed: a folded cycle. A click unfolds it.",
    nodes.some((node) => !node.members) && "A click on a node walks there.",
  ]
    .filter(Boolean)
    .join(" ");
}

export function GraphPage({ walk }: { walk: Walk }): JSX.Element {
  const [placed, setPlaced] = useState<Placed | null>(null);
  const [found, setFound] = useState<Data | null>(null);
  const [fold, setFold] = useState(false);
  const [unfolded, setUnfolded] = useState<ReadonlySet<number | string>>(new Set());
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
  /** What was asked for last: an answer or a drawing that comes later than the next question is dropped. */
  const turn = useRef(0);
  const attempt = async (act: (current: () => boolean) => Promise<void>): Promise<void> => {
    const own = ++turn.current;
    const current = (): boolean => alive.current && turn.current === own;
    try {
      await act(current);
    } catch (error) {
      if (current()) setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  const draw = async (graph: Data, how: boolean, open: ReadonlySet<number | string>): Promise<void> => {
    setFold(how);
    setUnfolded(open);
    await attempt(async (current) => {
      setSaid("drawing …");
      const drawn = await arrange(how ? folded(graph, open) : graph, () => walk.api.worker());
      if (!current()) return;
      setPlaced(drawn);
      setSaid("");
    });
  };
  const ask = async (projection: Record<string, unknown>): Promise<void> => {
    setSaid("searching …");
    setPlaced(null);
    setFound(null);
    await attempt(async (current) => {
      const graph = await walk.api.post<Data>("/api/graph", { from: null, projection, most: MOST });
      if (!current()) return;
      setFound(graph);
      await draw(graph, fold, new Set());
    });
  };
  const loops = useMemo(() => (found ? cycles(found) : []), [found]);
  const states = found?.states ?? found?.nodes.reduce((sum, node) => sum + node.count, 0) ?? 0;
  return (
    <section class="graph-page" aria-label="state graph">
      <Projection walk={walk} ask={(projection) => void ask(projection)} />
      <p role="status">
        {said}
        {placed &&
          found &&
          `${plural(placed.nodes.length, "node")} and ${plural(placed.edges.length, "edge")} for ${plural(states, "state")}. `}
        {found && !found.complete && "The picture is not complete: choose fewer fields. "}
        {found?.note}
      </p>
      {found && loops.length > 0 && (
        <p class="fold">
          <label>
            <input
              type="checkbox"
              checked={fold}
              onChange={(event) => void draw(found, event.currentTarget.checked, new Set())}
            />
            {` Fold ${plural(loops.length, "cycle")}`}
          </label>
        </p>
      )}
      {placed && (
        <>
          <section class="graph-scroll" tabIndex={0} aria-label="drawing" ref={scroll}>
            <Picture
              walk={walk}
              placed={placed}
              wide={wide}
              unfold={(members) => found && void draw(found, true, new Set([...unfolded, ...members]))}
            />
          </section>
          <p class="legend">{legend(placed)}</p>
        </>
      )}
    </section>
  );
}
