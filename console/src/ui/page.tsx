import type { ReactNode } from "react";
import { useEffect } from "react";
import styles from "./page.module.css";

/** Names the page in the browser's tabs and history. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Skein`;
  }, [title]);
}

/** A page with a title, tools at its right, and content that scrolls. */
export function Page({
  title,
  tools,
  isFlush = false,
  children,
}: {
  readonly title: string;
  readonly tools?: ReactNode;
  /** The content goes to the edges and scrolls by itself. */
  readonly isFlush?: boolean;
  readonly children: ReactNode;
}) {
  useTitle(title);
  return (
    <section className={styles.page} aria-label={title}>
      <header className={styles.head}>
        <h1>{title}</h1>
        <div className={styles.tools}>{tools}</div>
      </header>
      <div className={isFlush ? styles.flush : styles.body}>{children}</div>
    </section>
  );
}
