// The whole run in a narrow column: a dot per event, the window, matches, notes and the step. A click goes there.
import type { JSX, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Viewer } from "../viewer-state";
import type { Layout } from "./layout";

const WIDE = 64;

interface Props {
  viewer: Viewer;
  layout: Layout;
  pane: RefObject<HTMLElement | null>;
  zoom: number;
  frame: { top: number; high: number };
}

export function Minimap({ viewer, layout, pane, zoom, frame }: Props): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { view } = viewer;
  const high = Math.max(60, frame.high);
  const scale = high / layout.height;
  useEffect(() => {
    const at = canvas.current;
    const context = at?.getContext("2d");
    if (!at || !context) return;
    const ratio = window.devicePixelRatio || 1;
    at.width = WIDE * ratio;
    at.height = high * ratio;
    context.scale(ratio, ratio);
    const style = getComputedStyle(at);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const [ink, fault, match, note] = [color("--soft"), color("--fault"), color("--band-edge"), color("--loop")];
    const found = new Set(view.query ? viewer.matches : []);
    for (const step of layout.rows) {
      const event = layout.run.event(step);
      const y = layout.y(step) * scale;
      if (found.has(step)) {
        context.fillStyle = match;
        context.fillRect(0, y - 0.5, WIDE, 1.5);
      }
      if (view.notes[step]) {
        context.fillStyle = note;
        context.fillRect(0, y - 2, 5, 4);
      }
      if (!event) continue;
      const x = layout.x.get(event.lane) ?? layout.left;
      context.fillStyle = event.kind === "step" || event.kind === "tick" ? ink : fault;
      context.fillRect(
        (x / layout.width) * WIDE - 1,
        y - 0.5,
        event.kind === "step" ? 2 : 4,
        Math.max(1, Math.min(2, 20 * scale)),
      );
    }
  }, [layout, high, view.query, view.notes]);

  const jump = (event: PointerEvent): void => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box || !pane.current || (event.type === "pointermove" && event.buttons !== 1)) return;
    const y = ((event.clientY - box.top) / scale) * zoom;
    pane.current.scrollTop = y - frame.high / 2;
    if (event.type === "pointerup") viewer.go(layout.stepAt(y / zoom));
  };
  return (
    <div class="minimap" aria-hidden="true" onPointerDown={jump} onPointerMove={jump} onPointerUp={jump}>
      <canvas ref={canvas} style={{ width: `${WIDE}px`, height: `${high}px` }} />
      <div
        class="window"
        style={{ top: `${(frame.top / zoom) * scale}px`, height: `${Math.max(6, (frame.high / zoom) * scale)}px` }}
      />
      <div class="here" style={{ top: `${layout.y(view.step) * scale}px` }} />
    </div>
  );
}
