import type { ReactNode } from "react";
import { useEffect } from "react";
import styles from "./page.module.css";
import { plainText } from "./plain-text.ts";

/**
 * Sets the page's name in the browser's tabs and history. After a sign-out, neither a session name nor search words
 * remain there.
 */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = plainText(`${title} · Skein`);
    return () => {
      document.title = "Skein";
    };
  }, [title]);
}

/** A page with a title, tools to the right of it, and scrolling content. */
export function Page({
  title,
  tools,
  isFlush = false,
  children,
}: {
  readonly title: string;
  readonly tools?: ReactNode;
  /** `true` if the content extends to the edges and handles its own scrolling. */
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
