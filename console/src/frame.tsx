import { Activity, BarChart3, House, KeyRound, LayoutList, Search } from "lucide-react";
import type { ReactNode } from "react";
import { createContext, useContext, useEffect, useState, useSyncExternalStore } from "react";
import { Link, useLocation } from "wouter";
import { SignOutButton } from "./access/revoke-button.tsx";
import { useGateway } from "./connect/gateway.tsx";
import { identityText } from "./connect/sign-in.ts";
import { DeskList } from "./desk/desk-list.tsx";
import styles from "./frame.module.css";
import type { DeskState } from "./live/desk.ts";
import { Desk } from "./live/desk.ts";
import { useHome, useOpenPlace } from "./live/home.ts";
import type { SessionRow } from "./live/session-row.ts";
import { PaletteButton } from "./search/palette-button.tsx";
import { OfflineBar, ReadOnlyBar } from "./ui/notice.tsx";
import { useReturnFocus } from "./ui/return-focus.ts";

const DeskContext = createContext<Desk | null>(null);

/** The sessions visible to the token, shared by all views. */
export function useDesk(): DeskState & { readonly desk: Desk } {
  const desk = useContext(DeskContext);
  if (desk === null) throw new Error("There is no desk above this component.");
  return { ...useSyncExternalStore(desk.subscribe, desk.state), desk };
}

/** Returns one session from the desk if it is loaded. The component renders again only when this row changes. */
export function useSessionRow(
  place: { readonly key: string; readonly userId?: string } | null,
): SessionRow | null {
  const desk = useContext(DeskContext);
  if (desk === null) throw new Error("There is no desk above this component.");
  return useSyncExternalStore(desk.subscribe, () => (place === null ? null : desk.rowOf(place)));
}

const pages = [
  { href: "/", name: "Home", icon: House },
  { href: "/sessions", name: "Sessions", icon: LayoutList },
  { href: "/runs", name: "Runs", icon: Activity },
  { href: "/search", name: "Search", icon: Search },
  { href: "/usage", name: "Usage", icon: BarChart3 },
  { href: "/access", name: "Access", icon: KeyRound },
] as const;

/** The frame around every page: the navigation, the sessions, and the state of the gateway connection. */
export function Frame({ children }: { readonly children: ReactNode }) {
  const { client, feed } = useGateway();
  const [desk, setDesk] = useState<Desk | null>(null);
  useEffect(() => {
    const opened = new Desk(client, feed);
    setDesk(opened);
    return () => opened.close();
  }, [client, feed]);
  useReturnFocus();
  if (desk === null) return null;
  return (
    <DeskContext value={desk}>
      <div className={styles.frame}>
        <button
          type="button"
          className="visually-hidden"
          onClick={() => document.getElementById("content")?.focus()}
        >
          Skip to content
        </button>
        <aside className={styles.side}>
          <PaletteButton />
          <PageLinks />
          <div className={styles.desk}>
            <DeskList />
          </div>
          <div className={styles.foot}>
            <p>
              Signed in {identityText(client.hello)}
              <br />
              Skein {client.hello.server.version}
            </p>
            <SignOutButton />
          </div>
        </aside>
        <main id="content" className={styles.content} tabIndex={-1}>
          <OfflineBar />
          <ReadOnlyBar />
          <div className={styles.page}>{children}</div>
        </main>
      </div>
    </DeskContext>
  );
}

function PageLinks() {
  const [path] = useLocation();
  const home = useHome();
  const open = useOpenPlace();
  // The first page is the transcript of its session.
  const isHome = /^\/(?:s\/[^/]+)?$/.test(path) && open !== null && home.has(open);
  const current = isHome ? "/" : path;
  const { approvals } = useDesk();
  const count = approvals.length;
  return (
    <nav className={styles.pages} aria-label="Pages">
      {pages.map(({ href, name, icon: Icon }) => (
        <Link
          key={href}
          href={href}
          className={styles.pageLink}
          aria-current={current === href ? "page" : undefined}
        >
          <Icon size={16} aria-hidden />
          <span>{name}</span>
          {href === "/sessions" && count > 0 && (
            <span className={styles.alarm}>
              {count.toLocaleString("en")}
              <span className="visually-hidden"> {count === 1 ? "needs" : "need"} you</span>
            </span>
          )}
        </Link>
      ))}
    </nav>
  );
}
