import type { ReactNode } from "react";
import { Component } from "react";
import buttons from "./button.module.css";
import { Notice } from "./notice.tsx";

interface BoundaryState {
  readonly error: Error | null;
}

/** A page that fails to draw leaves the frame, the other pages and the connection as they are. */
export class PageBoundary extends Component<{ readonly children: ReactNode }, BoundaryState> {
  override state: BoundaryState = { error: null };

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Notice text={`This page cannot be shown: ${error.message}`} isError>
        <button type="button" className={buttons.button} onClick={() => this.setState({ error: null })}>
          Try again
        </button>
      </Notice>
    );
  }
}
