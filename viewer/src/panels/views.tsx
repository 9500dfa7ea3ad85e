// What the model's @view functions draw of the state that is shown. Each picture is an image of its own: in an image, a browser
// runs no script and loads nothing, whatever the picture contains. Plait has removed such content before.
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import styles from "../../../src/plait/report/assets/picture.css";
import type { Picture } from "../run/trace";
import { visible } from "../run/values";
import type { Viewer } from "../viewer-state";

/** The address of an image with a picture, in the colours of the page. */
export function address(svg: string): string {
  const inside = svg.indexOf(">") + 1;
  const whole = `${svg.slice(0, inside)}<style>${styles}</style>${svg.slice(inside)}`;
  return `data:image/svg+xml,${encodeURIComponent(whole)}`;
}

/** What a picture is called for those who do not see it: the name of the view, and the picture's own title. */
function alternative(name: string, svg: string): string {
  const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const title = [...root.children].find((child) => child.localName === "title")?.textContent?.trim();
  return visible(title ? `${name}: ${title}` : name);
}

function Drawn({ name, picture }: { name: string; picture: Picture }): JSX.Element {
  const { svg, error, note } = picture;
  const image = useMemo(() => (svg ? { src: address(svg), alt: alternative(name, svg) } : null), [name, svg]);
  return (
    <figure>
      <figcaption>{visible(name)}</figcaption>
      {image && <img src={image.src} alt={image.alt} />}
      {error && <p class="bad">{visible(error)}</p>}
      {note && <p class="note">{visible(note)}</p>}
    </figure>
  );
}

/** In a walk, the server draws the state that is shown. The pictures before stay until its answer is there. */
export function Views({ viewer }: { viewer: Viewer }): JSX.Element {
  const last = useRef<Record<string, Picture>>({});
  const now = viewer.pictures;
  if (now) last.current = now;
  return (
    <div class="views" aria-busy={!now}>
      {Object.entries(last.current).map(([name, picture]) => (
        <Drawn name={name} picture={picture} key={name} />
      ))}
    </div>
  );
}
