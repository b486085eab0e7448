import type { ReactNode } from "react";
import { Component } from "react";
import type { TranscriptEntry } from "../live/transcript.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable } from "../ui/foldable.tsx";
import styles from "./entry-row.module.css";

interface BoundaryProps {
  readonly entry: TranscriptEntry;
  readonly isTarget: boolean;
  readonly children: ReactNode;
}

interface BoundaryState {
  /**
   * The entry whose row could not be rendered. If the entry changes, for example by a redaction, its row is rendered
   * again.
   */
  readonly failed: TranscriptEntry | null;
}

/** Contains the failure of one row, so that an entry that cannot be rendered leaves the rest of the page usable. */
export class RowBoundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { failed: null };

  override componentDidCatch(): void {
    this.setState({ failed: this.props.entry });
  }

  override render(): ReactNode {
    const { entry, isTarget, children } = this.props;
    if (this.state.failed !== entry) return children;
    return (
      <article
        className={styles.row}
        data-kind="change"
        data-entry-id={entry.id}
        data-target={isTarget || undefined}
        aria-label="Entry that could not be shown"
      >
        <div className={styles.body}>
          <p className={styles.change}>This entry could not be shown.</p>
          <Foldable title="JSON">
            <CodeBlock text={JSON.stringify(entry, null, 2)} language="json" />
          </Foldable>
        </div>
      </article>
    );
  }
}
