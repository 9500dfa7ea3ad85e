// The tree of branches: every run that was walked. A click goes there; the rest of its branch stays visible.
import type { JSX } from "preact";
import { visible } from "../run/values";
import { path, rows } from "./tree";
import type { Walk } from "./walk";

export function Branches({ walk }: { walk: Walk }): JSX.Element {
  const here = walk.node;
  const shown = new Set(path(walk.tip));
  return (
    <div class="branches">
      {[...walk.trees].map(([initial, start]) => (
        <ul key={initial}>
          {rows(start).map(({ node, depth, branch }, i) => (
            <li
              class={`${node === here ? "current" : ""}${shown.has(node) ? " shown" : ""}`}
              style={{ marginInlineStart: `${Math.min(branch, 12) * 14}px` }}
              key={`${i} ${node.key}`}
            >
              <button type="button" aria-current={node === here ? "step" : undefined} onClick={() => walk.jump(node)}>
                <span class="number">{depth}</span> {visible(node.label)}
                {node.children.length > 1 && <span class="mark">{` ${node.children.length} branches`}</span>}
                {node.note && <span class="mark"> note</span>}
              </button>
              {node.parent && node.parent.children.length > 1 && (
                <button
                  type="button"
                  class="cut"
                  aria-label={`remove the branch ${node.label}`}
                  onClick={() => walk.remove(node)}
                >
                  ✕
                </button>
              )}
            </li>
          ))}
        </ul>
      ))}
    </div>
  );
}
