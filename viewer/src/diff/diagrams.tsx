// The diagrams of two runs, in panes that scroll together.
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { Diagram } from "../diagram/diagram";
import type { Viewer } from "../viewer-state";

export function Diagrams({ viewer, printing }: { viewer: Viewer; printing: boolean }): JSX.Element {
  const pair = useRef<HTMLDivElement>(null);
  const together = (event: Event): void => {
    const from = event.target as HTMLElement;
    for (const pane of pair.current?.querySelectorAll<HTMLElement>(".diagram") ?? [])
      if (pane !== from && pane.scrollTop !== from.scrollTop) pane.scrollTop = from.scrollTop;
  };
  return (
    <div class="pair" ref={pair} onScrollCapture={together}>
      {["A", "B"].map((name, i) => {
        const layout = viewer.layouts[i];
        return (
          layout && (
            <figure aria-label={`run ${name}`} key={name}>
              <figcaption>{name}</figcaption>
              <Diagram viewer={viewer} layout={layout} printing={printing} />
            </figure>
          )
        );
      })}
    </div>
  );
}
