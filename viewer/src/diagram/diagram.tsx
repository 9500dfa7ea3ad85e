// The pane of the diagram: it draws the rows near the window only, keeps the names of lanes visible, and follows the step.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Viewer } from "../viewer-state";
import { Drawing, Heads } from "./drawing";
import { HEAD, type Layout, ROW } from "./layout";
import { Minimap } from "./minimap";

/** Text that is smaller than this share of its size is not readable. */
const LEAST = 0.78;
/** The window moves in blocks of this many pixels, so that scrolling seldom draws. */
const BLOCK = 4 * ROW;
const MARGIN = 60;
/** Labels are not drawn in a smaller drawing: nobody could read them. */
const READABLE = 0.35;

function zoomOf(viewer: Viewer, layout: Layout, wide: number): number {
  const { zoom } = viewer.view;
  if (zoom !== null) return zoom;
  const fit = wide / layout.width;
  return fit >= 1 || window.innerWidth < 900 ? 1 : Math.max(LEAST, fit);
}

interface Props {
  viewer: Viewer;
  layout: Layout;
  printing: boolean;
}

export function Diagram({ viewer, layout, printing }: Props): JSX.Element {
  const pane = useRef<HTMLElement>(null);
  const [frame, setFrame] = useState({ top: 0, high: 800, wide: 800 });
  const { view } = viewer;
  const { run } = layout;
  const zoom = zoomOf(viewer, layout, frame.wide);
  const matches = useMemo(() => new Set(view.query ? viewer.matches : []), [viewer.matches, view.query]);

  const measure = (): void => {
    const at = pane.current;
    if (!at) return;
    const top = Math.floor(at.scrollTop / BLOCK) * BLOCK;
    setFrame((old) =>
      old.top === top && old.high === at.clientHeight && old.wide === at.clientWidth
        ? old
        : { top, high: at.clientHeight, wide: at.clientWidth },
    );
  };
  useLayoutEffect(measure);
  useEffect(() => {
    const watch = new ResizeObserver(measure);
    if (pane.current) watch.observe(pane.current);
    return () => watch.disconnect();
  }, []);

  /** Where the pane must be scrolled to, so that the step is visible. */
  const followed = (scrolled: number, high: number): number => {
    const y = layout.y(view.step) * zoom;
    const half = (ROW / 2) * zoom;
    const top = y - half - HEAD * zoom - 6;
    const bottom = y + half + MARGIN;
    if (top < scrolled) return Math.max(0, top - MARGIN / 2);
    return bottom > scrolled + high ? bottom - high : scrolled;
  };
  const last = useRef<unknown[]>([]);
  const now = [view.step, layout, zoom, frame.high];
  const moves = now.some((one, i) => one !== last.current[i]);

  // Follow the step: the pane scrolls, never the page.
  useLayoutEffect(() => {
    last.current = now;
    const at = pane.current;
    if (!at) return;
    const scrolled = followed(at.scrollTop, at.clientHeight);
    if (scrolled !== at.scrollTop) at.scrollTop = scrolled;
    const lane = run.event(view.step)?.lane;
    const x = lane === undefined ? undefined : layout.x.get(lane);
    if (x !== undefined) {
      const reach = Math.min(layout.spacing * zoom, at.clientWidth / 2 - 4);
      if (x * zoom - reach < at.scrollLeft) at.scrollLeft = x * zoom - reach;
      else if (x * zoom + reach > at.scrollLeft + at.clientWidth) at.scrollLeft = x * zoom + reach - at.clientWidth;
    }
    measure();
  }, now);

  const click = (event: MouseEvent): void => {
    const hit = (event.target as Element).closest<SVGElement>("[data-step], [data-to], [data-from]");
    if (hit) viewer.go(Number(hit.dataset.step ?? hit.dataset.to ?? hit.dataset.from));
  };
  // What will be visible is drawn at once, not only after the pane was scrolled there.
  const start = moves ? Math.floor(followed(frame.top, frame.high) / BLOCK) * BLOCK : frame.top;
  const part = printing
    ? { top: 0, bottom: layout.height }
    : { top: (start - BLOCK) / zoom, bottom: (start + frame.high + 2 * BLOCK) / zoom };
  const labels = printing || zoom >= READABLE;
  const size = { width: layout.width * zoom, height: layout.height * zoom };
  return (
    <div class="diagram-frame">
      <section
        class="diagram pane"
        tabIndex={0}
        aria-label="space-time diagram"
        ref={pane}
        onScroll={measure}
        onClick={click}
      >
        <div class="canvas" style={{ width: `${size.width}px` }}>
          <div class="sticky">
            <svg
              class="plait-diagram"
              viewBox={`0 0 ${layout.width} 38`}
              width={size.width}
              height={38 * zoom}
              aria-hidden="true"
            >
              <Heads layout={layout} />
            </svg>
          </div>
          <svg
            class="plait-diagram drawn"
            viewBox={`0 0 ${layout.width} ${layout.height}`}
            {...size}
            role="img"
            aria-label={`Space-time diagram, ${run.place(view.step)}. The list of steps has the same content as text.`}
          >
            <Drawing
              layout={layout}
              part={part}
              labels={labels}
              marks={{ step: printing ? null : view.step, matches, notes: view.notes }}
            />
            {printing && <Heads layout={layout} />}
          </svg>
        </div>
      </section>
      {layout === viewer.layouts.at(-1) && layout.height * zoom > frame.high * 3 && (
        <Minimap viewer={viewer} layout={layout} pane={pane} zoom={zoom} frame={frame} />
      )}
    </div>
  );
}
