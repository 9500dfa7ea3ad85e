// Dialogs over the viewer: help, lanes and fields, note, go to a step, exports. Escape closes each of them.
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Find } from "../explore/find";
import { Initials } from "../explore/initials";
import { download, mermaid, plainText, png, svg } from "../export";
import { applies, GROUPS } from "../keys";
import { PREFIXES, prefixes } from "../run/search";
import { visible } from "../run/values";
import type { Viewer } from "../viewer-state";

export function Modal({
  viewer,
  title,
  children,
}: {
  viewer: Viewer;
  title: string;
  children: ComponentChildren;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  // At once: a reader may type on without looking.
  useLayoutEffect(() => {
    const root = dialog.current?.getRootNode() as Document | ShadowRoot | undefined;
    const before = root?.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("[data-focus]")?.focus();
    return () => before?.focus?.();
  }, []);
  // The browser tells of a closed dialog a little later: a key that is pressed meanwhile would be lost.
  const close = (): void => viewer.set({ dialog: null });
  return (
    <dialog
      class="modal"
      ref={dialog}
      aria-label={title}
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        close();
      }}
    >
      <div class="inside">
        <header>
          <h2>{title}</h2>
          <button type="button" class="close" aria-label="close" onClick={close}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

function Help({ viewer }: { viewer: Viewer }): JSX.Element {
  return (
    <Modal viewer={viewer} title="Keys">
      <div class="help">
        {GROUPS.map(({ name, bindings }) => ({ name, known: bindings.filter((one) => applies(viewer, one)) }))
          .filter(({ known }) => known.length > 0)
          .map(({ name, known }) => (
            <section key={name}>
              <h3>{name}</h3>
              <dl>
                {known.map(({ shown, text }) => (
                  <div key={shown}>
                    <dt>
                      <kbd>{shown}</kbd>
                    </dt>
                    <dd>{text}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
      </div>
      <p class="hint">
        Search: words, <code>-not</code>
        {(viewer.walk ? PREFIXES : prefixes(viewer.run)).map((prefix) => (
          <span key={prefix}>
            , <code>{prefix === "step" ? "step:10-20" : `${prefix}:`}</code>
          </span>
        ))}
        .
      </p>
    </Modal>
  );
}

function Choice({
  viewer,
  kind,
  name,
  shown,
}: {
  viewer: Viewer;
  kind: "hiddenLanes" | "hiddenFields";
  name: string;
  shown: string;
}): JSX.Element {
  return (
    <label>
      <input type="checkbox" checked={!viewer.view[kind].has(name)} onChange={() => viewer.toggle(kind, name)} />
      {shown}
    </label>
  );
}

function Lanes({ viewer }: { viewer: Viewer }): JSX.Element {
  const { lanes } = viewer.run.trace;
  const { fields, monitors } = viewer.run.state(viewer.view.step);
  const roles = [...new Set(lanes.map((lane) => lane.role))];
  const names = [...new Set([...Object.values(fields).flatMap((one) => Object.keys(one)), ...Object.keys(monitors)])];
  const hide = (hiddenLanes: Iterable<string>): void => viewer.set({ hiddenLanes: new Set(hiddenLanes) });
  return (
    <Modal viewer={viewer} title="Lanes and fields">
      <h3>Lanes</h3>
      <p class="buttons">
        <button type="button" data-focus onClick={() => hide([])}>
          All
        </button>
        {roles.length > 1 &&
          roles.map((role) => (
            <button
              type="button"
              onClick={() => hide(lanes.filter((lane) => lane.role !== role).map((lane) => lane.name))}
              key={role}
            >
              Only {visible(role)}
            </button>
          ))}
      </p>
      <div class="choices">
        {lanes.map(({ name }) => (
          <Choice viewer={viewer} kind="hiddenLanes" name={name} shown={visible(name)} key={name} />
        ))}
      </div>
      <h3>Fields</h3>
      <div class="choices">
        {names.map((name) => (
          <Choice viewer={viewer} kind="hiddenFields" name={name} shown={visible(name)} key={name} />
        ))}
      </div>
    </Modal>
  );
}

function Note({ viewer }: { viewer: Viewer }): JSX.Element {
  const { step, notes } = viewer.view;
  const [note, setNote] = useState(notes[step] ?? "");
  const save = (event: Event): void => {
    event.preventDefault();
    viewer.note(step, note);
    viewer.set({ dialog: null, said: note.trim() ? "note saved: it is part of the link" : "note removed" });
  };
  return (
    <Modal viewer={viewer} title={`Note on step ${step}`}>
      <form onSubmit={save}>
        <textarea
          rows={4}
          data-focus
          aria-label={`note on step ${step}`}
          value={note}
          onInput={(event) => setNote(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && save(event)}
        />
        <p class="buttons">
          <button type="submit">Save (Ctrl+Enter)</button>
        </p>
      </form>
    </Modal>
  );
}

function GoTo({ viewer }: { viewer: Viewer }): JSX.Element {
  const [step, setStep] = useState(String(viewer.view.step));
  const go = (event: Event): void => {
    event.preventDefault();
    viewer.set({ dialog: null });
    viewer.go(Number(step) || 0);
  };
  return (
    <Modal viewer={viewer} title="Go to a step">
      <form onSubmit={go}>
        <label>
          Step (0 to {viewer.run.last}){" "}
          <input
            type="number"
            min="0"
            max={viewer.run.last}
            value={step}
            data-focus
            onInput={(event) => setStep(event.currentTarget.value)}
          />
        </label>
        <p class="buttons">
          <button type="submit">Go</button>
        </p>
      </form>
    </Modal>
  );
}

function Export({ viewer }: { viewer: Viewer }): JSX.Element {
  const [said, setSaid] = useState("");
  const { run, view, walk } = viewer;
  const linked = viewer.stage?.linked ?? false;
  const address = walk?.address ?? viewer.address;
  const attempt = (act: () => unknown): void => {
    Promise.resolve()
      .then(act)
      .then(() => setSaid("done"))
      .catch((error: unknown) => setSaid(String(error instanceof Error ? error.message : error)));
  };
  const copy = (text: string) => () => attempt(() => navigator.clipboard.writeText(text));
  return (
    <Modal viewer={viewer} title={linked ? "Link and exports" : "Exports"}>
      {linked && (
        <label class="address">
          This run, step, notes and choices as a link
          <input type="text" readOnly value={address} onFocus={(event) => event.currentTarget.select()} />
        </label>
      )}
      {linked && (
        <p class="buttons">
          <button type="button" data-focus onClick={copy(address)}>
            Copy the link
          </button>
        </p>
      )}
      <p class="buttons">
        <button
          type="button"
          onClick={() => attempt(() => download("run.svg", new Blob([svg(viewer)], { type: "image/svg+xml" })))}
        >
          SVG
        </button>
        <button type="button" onClick={() => attempt(async () => download("run.png", await png(viewer)))}>
          PNG
        </button>
        {run.sides.map((side, i) => {
          const whose = run.sides.length > 1 ? ["A", "B"][i] : undefined;
          return (
            <button
              type="button"
              onClick={() => attempt(() => download(`run${whose ?? ""}.mmd`, mermaid(side, view.hiddenLanes)))}
              key={i}
            >
              {whose ? `Mermaid (${whose})` : "Mermaid"}
            </button>
          );
        })}
        <button type="button" onClick={() => attempt(() => download("run.txt", plainText(run, view.notes)))}>
          Text
        </button>
        {walk?.exports.map(({ format, name, file }) => (
          <button
            type="button"
            onClick={() => attempt(async () => download(file, await walk.export(format)))}
            key={format}
          >
            {name}
          </button>
        ))}
      </p>
      <p role="status">{said}</p>
    </Modal>
  );
}

export function Dialogs({ viewer }: { viewer: Viewer }): JSX.Element | null {
  switch (viewer.view.dialog) {
    case "help":
      return <Help viewer={viewer} />;
    case "lanes":
      return <Lanes viewer={viewer} />;
    case "note":
      return <Note viewer={viewer} />;
    case "goto":
      return <GoTo viewer={viewer} />;
    case "export":
      return <Export viewer={viewer} />;
    case "find":
      return viewer.walk && <Find viewer={viewer} walk={viewer.walk} />;
    case "initial":
      return viewer.walk && <Initials viewer={viewer} walk={viewer.walk} />;
    default:
      return null;
  }
}
