import type { ReactNode } from "react";
import { useState } from "react";
import styles from "./foldable.module.css";

/** A part that is not mounted while it is folded. */
export function Foldable({ title, children }: { readonly title: ReactNode; readonly children: ReactNode }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details
      className={styles.fold}
      open={isOpen}
      onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}
    >
      <summary>{title}</summary>
      {isOpen && children}
    </details>
  );
}
