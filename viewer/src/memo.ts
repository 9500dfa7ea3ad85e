// A component that is drawn again only if a property changed. (preact/compat has one, and much that is not needed.)
import { Component, type ComponentChild, type FunctionComponent, h } from "preact";

export function memo<P extends object>(drawn: (props: P) => ComponentChild): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const now = this.props as Record<string, unknown>;
      return Object.entries(next).some(([name, value]) => name !== "children" && now[name] !== value);
    }
    override render(): ComponentChild {
      return drawn(this.props as P);
    }
  }
  return (props) => h(Memo as never, props as never);
}
