// The entry point in notebooks, as anywidget wants it. The viewer lives in a shadow root, so that its styles and those of
// the notebook do not meet.
import { KernelApi, type WidgetModel } from "./explore/kernel";
import { press } from "./keys";
import { Stage } from "./mount";
import { tables } from "./tables";

/** The style sheet of pages, for a shadow root. The build writes it. */
declare const STYLES: string;

/** Whether the notebook is dark: it may be so although the system is not. */
function isDark(element: HTMLElement): boolean {
  for (let at: HTMLElement | null = element; at; at = at.parentElement) {
    const [red, green, blue, alpha = 1] =
      getComputedStyle(at)
        .backgroundColor.match(/[\d.]+/g)
        ?.map(Number) ?? [];
    if (blue !== undefined && alpha > 0.5) return 0.3 * (red ?? 0) + 0.6 * (green ?? 0) + 0.1 * blue < 110;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The styles, with the colours of the notebook. */
function styled(element: HTMLElement, root: ShadowRoot): () => void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLES);
  root.adoptedStyleSheets = [sheet];
  const choices = [...sheet.cssRules].filter(
    (rule): rule is CSSMediaRule => rule instanceof CSSMediaRule && rule.conditionText.includes("prefers-color-scheme"),
  );
  const choose = (): void => {
    const dark = isDark(element);
    for (const rule of choices) rule.media.mediaText = dark ? "screen" : "not all";
    element.style.colorScheme = dark ? "dark" : "light";
  };
  choose();
  requestAnimationFrame(choose); // then the element is in the page
  const watch = new MutationObserver(choose);
  for (const one of [document.documentElement, document.body]) watch.observe(one, { attributes: true });
  return () => watch.disconnect();
}

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const host = document.createElement("div");
  // JupyterLab's shortcuts (d d deletes a cell) are not for keys that are pressed here.
  host.dataset.lmSuppressShortcuts = "true";
  el.append(host);
  const root = host.attachShadow({ mode: "open" });
  const page = document.createElement("div");
  page.className = "page traces widget";
  page.tabIndex = -1;
  // Plait wrote and escaped it. It contains no script that runs.
  page.innerHTML = String(model.get("content"));
  root.append(page);
  const stage = new Stage(root, false);
  stage.onEnd(styled(host, root));
  page.addEventListener("keydown", (event) => {
    const used = stage.active && press(stage.active, event);
    if (used || !(event.ctrlKey || event.metaKey)) event.stopPropagation();
  });
  const explorer = page.querySelector<HTMLElement>("section.explorer");
  if (explorer) {
    const api = new KernelApi(model);
    stage.onEnd(() => api.close());
    void stage.explore(explorer, api);
  } else stage.reports();
  tables(page);
  return () => stage.end();
}

export default { render };
