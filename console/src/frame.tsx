import { Activity, BarChart3, KeyRound, LayoutList, MessageSquare, Search } from "lucide-react";
import type { ReactNode } from "react";
import { createContext, useContext, useEffect, useState, useSyncExternalStore } from "react";
import { Link, useLocation } from "wouter";
import { useConnectionState, useGateway } from "./connect/gateway.tsx";
import { DeskList } from "./desk/desk-list.tsx";
import styles from "./frame.module.css";
import type { DeskState, SessionRow } from "./live/desk.ts";
import { Desk } from "./live/desk.ts";
import { PaletteButton } from "./search/palette-button.tsx";

const DeskContext = createContext<Desk | null>(null);

/** The sessions of the token, as every view sees them. */
export function useDesk(): DeskState & { readonly desk: Desk } {
  const desk = useContext(DeskContext);
  if (desk === null) throw new Error("There is no desk above this component.");
  return { ...useSyncExternalStore(desk.subscribe, desk.state), desk };
}

/** One session of the desk, if it is loaded. The component renders again only when this row changes. */
export function useSessionRow(
  place: { readonly key: string; readonly userId?: string } | null,
): SessionRow | null {
  const desk = useContext(DeskContext);
  if (desk === null) throw new Error("There is no desk above this component.");
  return useSyncExternalStore(desk.subscribe, () => (place === null ? null : desk.rowOf(place)));
}

const pages = [
  { href: "/", name: "Main", icon: MessageSquare },
  { href: "/sessions", name: "Sessions", icon: LayoutList },
  { href: "/work", name: "Runs", icon: Activity },
  { href: "/search", name: "Search", icon: Search },
  { href: "/usage", name: "Usage", icon: BarChart3 },
  { href: "/access", name: "Access", icon: KeyRound },
] as const;

/** What is around every page: the pages, the sessions, and whether the gateway is there. */
export function Frame({ children }: { readonly children: ReactNode }) {
  const { client, feed } = useGateway();
  const [desk, setDesk] = useState<Desk | null>(null);
  useEffect(() => {
    const opened = new Desk(client, feed);
    setDesk(opened);
    return () => opened.close();
  }, [client, feed]);
  const [path] = useLocation();
  if (desk === null) return null;
  return (
    <DeskContext value={desk}>
      <div className={styles.frame}>
        <button
          type="button"
          className="visually-hidden"
          onClick={() => document.getElementById("content")?.focus()}
        >
          Skip to the content
        </button>
        <aside className={styles.side}>
          <PaletteButton />
          <nav className={styles.pages} aria-label="Pages">
            {pages.map(({ href, name, icon: Icon }) => (
              <Link
                key={href}
                href={href}
                className={styles.page}
                aria-current={path === href ? "page" : undefined}
              >
                <Icon size={16} aria-hidden />
                <span>{name}</span>
              </Link>
            ))}
          </nav>
          <div className={styles.desk}>
            <DeskList />
          </div>
          <Connection />
        </aside>
        <main id="content" className={styles.content} tabIndex={-1}>
          {children}
        </main>
      </div>
    </DeskContext>
  );
}

function Connection() {
  const state = useConnectionState();
  const { client } = useGateway();
  return (
    <p className={styles.connection} data-state={state} role="status">
      {state === "open" ? `Skein ${client.hello.server.version}` : "The gateway is away; trying again"}
    </p>
  );
}
