// Scrolls a pane so that one of its elements is visible. (scrollIntoView would scroll the page too.)

const MARGIN = 6;

export function reveal(element: Element | null | undefined): void {
  const pane = element?.closest<HTMLElement>(".pane");
  if (!element || !pane) return;
  const inside = element.getBoundingClientRect();
  const frame = pane.getBoundingClientRect();
  const top = frame.top + MARGIN;
  const bottom = frame.top + pane.clientHeight - MARGIN;
  if (inside.top < top) pane.scrollTop -= top - inside.top;
  else if (inside.bottom > bottom) pane.scrollTop += Math.min(inside.bottom - bottom, inside.top - top);
}
