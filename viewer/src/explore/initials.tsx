// The choice of the initial state.
import type { JSX } from "preact";
import { Modal } from "../panels/dialogs";
import { visible } from "../run/values";
import type { Viewer } from "../viewer-state";
import type { Walk } from "./walk";

const MOST = 200;

export function Initials({ viewer, walk }: { viewer: Viewer; walk: Walk }): JSX.Element {
  const count = walk.model.initial;
  return (
    <Modal viewer={viewer} title={count === 1 ? "The only initial state" : `${count} initial states`}>
      <ol class="initials" start={0}>
        {Array.from({ length: Math.min(count, MOST) }, (_, i) => (
          <li key={i}>
            <button
              type="button"
              aria-current={walk.run.initial === i}
              onClick={() => {
                viewer.set({ dialog: null });
                void walk.open({ initial: i, steps: [] });
              }}
            >
              {visible(walk.model.initials?.[i] || `initial state ${i}`)}
            </button>
          </li>
        ))}
      </ol>
    </Modal>
  );
}
