import type { ReactNode } from "react";
import buttons from "./button.module.css";
import { Kbd, useKeys } from "./keys.tsx";
import styles from "./side-panel.module.css";

interface SidePanelProps {
  readonly title: string;
  /** What it is about, in mono at the right of the title. */
  readonly note?: string;
  /** The thread of the session that it is about. */
  readonly thread?: number | undefined;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** Details at the side of a list; over it where the page is narrow. */
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
