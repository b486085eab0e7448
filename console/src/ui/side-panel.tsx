import type { ReactNode } from "react";
import buttons from "./button.module.css";
import { Kbd, useKeys } from "./keys.tsx";
import styles from "./side-panel.module.css";

interface SidePanelProps {
  readonly title: string;
  /** The subject, in a monospace font to the right of the title. */
  readonly note?: string;
  /** The thread of the panel's session. */
  readonly thread?: number | undefined;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** Details next to a list, or over it on narrow pages. */
export function SidePanel({ title, note, thread, onClose, children }: SidePanelProps) {
  useKeys({ Escape: onClose });
  return (
    <aside className={styles.panel} aria-label={title} data-thread={thread}>
      <header className={styles.head}>
        <h2>{title}</h2>
        <code>{note}</code>
        <button type="button" className={buttons.button} data-look="quiet" onClick={onClose}>
          Close <Kbd keys="Escape" />
        </button>
      </header>
      {children}
    </aside>
  );
}
