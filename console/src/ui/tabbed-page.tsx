import type { ReactNode } from "react";
import { Link } from "wouter";
import { useTitle } from "./page.tsx";
import styles from "./tabbed-page.module.css";

interface PageTab {
  readonly name: string;
  readonly href: string;
  readonly isCurrent: boolean;
  readonly count?: number;
  /** Whether the count needs attention. */
  readonly isAlarm?: boolean;
}

interface TabbedPageProps {
  readonly title: string;
  readonly tabs: readonly PageTab[];
  readonly tools?: ReactNode;
  readonly children: ReactNode;
}

/** A page whose title selects one of its parts. The content extends to the edges and handles its own scrolling. */
export function TabbedPage({ title, tabs, tools, children }: TabbedPageProps) {
  const tab = tabs.find(({ isCurrent }) => isCurrent)?.name ?? title;
  useTitle(tab === title ? title : `${tab} · ${title}`);
  return (
    <section className={styles.page} aria-label={title}>
      <header className={styles.head}>
        <h1 className="visually-hidden">{title}</h1>
        <nav className={styles.tabs} aria-label={title}>
          {tabs.map(({ name, href, isCurrent, count, isAlarm = false }) => (
            <Link key={href} href={href} className={styles.tab} aria-current={isCurrent ? "page" : undefined}>
              {name}
              {count !== undefined && count > 0 && (
                <span className={styles.count} data-alarm={isAlarm || undefined}>
                  {count.toLocaleString("en")}
                </span>
              )}
            </Link>
          ))}
        </nav>
        {tools !== undefined && <div className={styles.tools}>{tools}</div>}
      </header>
      {children}
    </section>
  );
}
