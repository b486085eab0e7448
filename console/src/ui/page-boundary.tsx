import type { ReactNode } from "react";
import { Component } from "react";
import buttons from "./button.module.css";
import { retryFailedParts } from "./lazy-part.tsx";
import styles from "./notice.module.css";
import { Notice } from "./notice.tsx";

interface BoundaryProps {
  /** When the path changes, the previous page's failure is discarded. */
  readonly path: string;
  /** Replaces the notice that fills a whole page. */
  readonly fallback?: (retry: () => void) => ReactNode;
  readonly children: ReactNode;
}

interface BoundaryState {
  readonly error: Error | null;
}

/** Contains the failure of a page, so that the frame, the other pages and the connection are unaffected. */
export class PageBoundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: null };

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidUpdate({ path }: BoundaryProps): void {
    if (path !== this.props.path && this.state.error !== null) this.#retry();
  }

  override componentWillUnmount(): void {
    if (this.state.error !== null) retryFailedParts();
  }

  #retry(): void {
    retryFailedParts();
    this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    const { children, fallback } = this.props;
    if (error === null) return children;
    if (fallback !== undefined) return fallback(() => this.#retry());
    // After a gateway update, the page's parts can be loaded only after a reload, which loses attachments.
    return (
      <Notice text={`This page cannot be shown: ${error.message}`} isError>
        <p className={styles.actions}>
          <button type="button" className={buttons.button} onClick={() => this.#retry()}>
            Try again
          </button>
          <button type="button" className={buttons.button} onClick={() => location.reload()}>
            Reload the page
          </button>
        </p>
      </Notice>
    );
  }
}
