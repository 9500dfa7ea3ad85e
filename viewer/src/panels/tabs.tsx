// A group of panels, one of them visible. Arrow keys move between tabs, as readers of ARIA tabs expect.
import type { ComponentChildren, JSX } from "preact";

export interface Tab {
  id: string;
  name: string;
  content: () => ComponentChildren;
}

interface Props {
  label: string;
  tabs: Tab[];
  chosen: string;
  choose: (id: string) => void;
  prefix: string;
}

export function Tabs({ label, tabs, chosen, choose, prefix }: Props): JSX.Element {
  const active = tabs.find((tab) => tab.id === chosen) ?? (tabs[0] as Tab);
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next = tabs[(tabs.indexOf(active) + by + tabs.length) % tabs.length] as Tab;
    choose(next.id);
    const list = event.currentTarget as HTMLElement;
    list.querySelector<HTMLElement>(`#${prefix}-tab-${next.id}`)?.focus();
  };
  return (
    <div class={`tabs ${prefix.replace(/^.*-/, "")}`}>
      {tabs.length > 1 && (
        <div class="tablist" role="tablist" aria-label={label} onKeyDown={press}>
          {tabs.map((tab) => (
            <button
              type="button"
              role="tab"
              id={`${prefix}-tab-${tab.id}`}
              aria-selected={tab === active}
              aria-controls={`${prefix}-panel`}
              tabIndex={tab === active ? 0 : -1}
              onClick={() => choose(tab.id)}
              key={tab.id}
            >
              {tab.name}
            </button>
          ))}
        </div>
      )}
      <section
        class={`pane panel-${active.id}`}
        id={`${prefix}-panel`}
        role={tabs.length > 1 ? "tabpanel" : undefined}
        aria-labelledby={tabs.length > 1 ? `${prefix}-tab-${active.id}` : undefined}
        aria-label={tabs.length > 1 ? undefined : active.name}
        tabIndex={0}
        key={active.id}
      >
        {active.content()}
      </section>
    </div>
  );
}
