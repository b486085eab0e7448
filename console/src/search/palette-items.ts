import { useEffect, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { useCall, useGateway, useMay } from "../connect/gateway.tsx";
import { userParam } from "../connect/user-param.ts";
import { useDesk } from "../frame.tsx";
import { idOf, partOf, rowName } from "../live/desk.ts";
import type { SessionPlace } from "../session/session-place.ts";
import { sessionPath } from "../session/session-place.ts";
import { hasLetterKeys, setLetterKeys } from "../ui/keys.ts";
import { applyTheme } from "../ui/theme.ts";
import { threadOf } from "../ui/thread.ts";
import type { SearchHit } from "./hit-text.tsx";
import { hitPath } from "./hit-text.tsx";

export interface PaletteItem {
  readonly id: string;
  readonly group: "Sessions" | "Pages" | "Actions" | "Messages";
  readonly name: string;
  readonly note?: string;
  readonly thread?: number;
  readonly hit?: SearchHit;
  /** Where it leads; or what it does. */
  readonly act: string | (() => Promise<string | null> | null);
}

const mostSessions = 8;
const mostMessages = 6;
const typingMs = 150;

const pages = {
  "/": "Main",
  "/sessions": "Sessions",
  "/work": "Runs",
  "/work?tab=approvals": "Approvals",
  "/work?tab=outbox": "Outbox",
  "/search": "Search",
  "/usage": "Usage",
  "/access": "Access",
  "/access?tab=tokens": "Tokens",
} as const;

/** What the palette offers for what was typed: sessions, pages and actions by name, and messages that contain it. */
export function usePaletteItems(text: string): {
  readonly items: readonly PaletteItem[];
  readonly isSearching: boolean;
} {
  const sessions = useSessionItems();
  const actions = useActions();
  const messages = useMessages(text);
  return useMemo(() => {
    const typed = text.trim();
    const pageItems = Object.entries(pages).map(
      ([path, name]): PaletteItem => ({ id: path, group: "Pages", name, act: path }),
    );
    return {
      items: [
        ...best(sessions, typed).slice(0, mostSessions),
        ...best(pageItems, typed),
        ...best(actions, typed),
        ...messages.items,
      ],
      isSearching: messages.isSearching,
    };
  }, [text, sessions, actions, messages]);
}

function useSessionItems(): readonly PaletteItem[] {
  const { rows, approvals } = useDesk();
  return useMemo(() => {
    const waiting = new Set(
      approvals.map(({ sessionKey, userId }) => idOf({ key: sessionKey, ...userParam({ userId }) })),
    );
    const order = { "needs-you": 0, working: 1, done: 2 };
    return rows
      .map((row) => ({ row, part: partOf(row, waiting) }))
      .sort((a, b) => order[a.part] - order[b.part])
      .map(({ row, part }): PaletteItem => {
        const place = { key: row.key, ...userParam(row) };
        return {
          id: `session ${idOf(row)}`,
          group: "Sessions",
          name: rowName(row),
          ...(part === "needs-you" ? { note: "needs you" } : part === "working" ? { note: "working" } : {}),
          thread: threadOf(row.sessionId),
          act: sessionPath(place),
        };
      });
  }, [rows, approvals]);
}

function useActions(): readonly PaletteItem[] {
  const { client } = useGateway();
  const [path] = useLocation();
  const mayCreate = useMay("sessions.create");
  return useMemo(() => {
    const place = currentSession(path);
    const here = path.startsWith("/s/") ? "of this session" : "of main";
    const create = async () => {
      const { key } = await client.call("sessions.create", {});
      return sessionPath({ key });
    };
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = document.documentElement.dataset.theme ?? (isDark ? "dark" : "light");
    const action = (id: string, name: string, act: PaletteItem["act"]): PaletteItem => ({
      id,
      group: "Actions",
      name,
      act,
    });
    return [
      ...(mayCreate ? [action("new", "New session", create)] : []),
      action("context", `What the model sees: X-ray ${here}`, sessionPath(place, "context")),
      action("tree", `Tree ${here}`, sessionPath(place, "tree")),
      action("family", `Family ${here}`, sessionPath(place, "family")),
      action("theme", theme === "dark" ? "Switch to the light theme" : "Switch to the dark theme", () => {
        applyTheme(theme === "dark" ? "light" : "dark");
        return null;
      }),
      action(
        "keys",
        hasLetterKeys() ? "Switch single-letter keys off" : "Switch single-letter keys on",
        () => {
          setLetterKeys(!hasLetterKeys());
          return null;
        },
      ),
    ];
  }, [client, path, mayCreate]);
}

/** The session whose page is open, otherwise main. */
function currentSession(path: string): SessionPlace {
  const [, encoded] = /^\/s\/([^/?]+)/.exec(path) ?? [];
  if (encoded === undefined) return { key: "main" };
  const userId = new URLSearchParams(location.hash.split("?")[1] ?? "").get("user");
  return { key: decodeURIComponent(encoded), ...userParam({ userId: userId ?? undefined }) };
}

/** The result of the last search stays until the next one is there, so that rows do not flicker while typing. */
function useMessages(text: string): {
  readonly items: readonly PaletteItem[];
  readonly isSearching: boolean;
} {
  const typed = useLate(text.trim());
  const isWanted = typed.length > 1;
  const { data, isFetching } = useCall(
    "sessions.search",
    { query: typed === "" ? " " : typed, limit: mostMessages },
    { isEnabled: isWanted, keepsPrevious: true },
  );
  return useMemo(() => {
    const items = (isWanted ? (data?.hits ?? []) : []).map(
      (hit): PaletteItem => ({
        id: `hit ${hit.sessionId} ${hit.entryId}`,
        group: "Messages",
        name: hit.key,
        thread: threadOf(hit.sessionId),
        hit,
        act: hitPath(hit),
      }),
    );
    const all = `/search?${new URLSearchParams({ q: typed }).toString()}`;
    const more: PaletteItem = {
      id: "all",
      group: "Messages",
      name: `Search for “${typed}” in all sessions`,
      act: all,
    };
    return { items: isWanted ? [...items, more] : [], isSearching: isFetching };
  }, [data, isWanted, isFetching, typed]);
}

function useLate(value: string): string {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), typingMs);
    return () => clearTimeout(timer);
  }, [value]);
  return late;
}

/** Those that match, the best first; all of them in their order if nothing was typed. */
function best(items: readonly PaletteItem[], typed: string): readonly PaletteItem[] {
  if (typed === "") return items;
  return items
    .map((item) => ({ item, score: scoreOf(item.name, typed) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ item }) => item);
}

/** 4: begins with it; 3: a word does; 2: contains it; 1: has its letters in this order; 0: no match. */
export function scoreOf(name: string, typed: string): number {
  const text = name.toLowerCase();
  const wanted = typed.toLowerCase();
  if (text.startsWith(wanted)) return 4;
  const at = text.indexOf(wanted);
  if (at > 0) return /[^\p{L}\p{N}]/u.test(text[at - 1] ?? "") ? 3 : 2;
  let from = 0;
  for (const letter of wanted) {
    from = text.indexOf(letter, from) + 1;
    if (from === 0) return 0;
  }
  return 1;
}
