import type { ReactNode } from "react";
import { Component } from "react";
import buttons from "./button.module.css";
import { Notice } from "./notice.tsx";

interface BoundaryProps {
  /** Another page starts without the failure of the one before. */
  readonly path: string;
  readonly children: ReactNode;
}

interface BoundaryState {
  readonly error: Error | null;
}

/** A page that fails leaves the frame, the other pages and the connection as they are. */
export class PageBoundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: null };

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidUpdate({ path }: BoundaryProps): void {
    if (path !== this.props.path && this.state.error !== null) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    // A part that could not be loaded, such as after an update of the gateway, is not asked for again before a reload.
    return (
      <Notice text={`This page cannot be shown: ${error.message}`} isError>
        <button type="button" className={buttons.button} onClick={() => location.reload()}>
          Reload
        </button>
      </Notice>
    );
  }
}
