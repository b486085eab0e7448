import { useMemo } from "react";
import { useLocation, useSearchParams } from "wouter";
import { useCall, useChange, useGateway, useMay } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import { partOf } from "../live/desk.ts";
import { fullName, idOf } from "../live/session-row.ts";
import { accessPath, placeOf, placeOfPath, searchPath, sessionPath, userParam } from "../paths.ts";
import { hasLetterKeys, setLetterKeys } from "../ui/keys.tsx";
import { applyTheme, threadOf } from "../ui/theme.ts";
import type { SearchHit } from "./hit-text.tsx";
import { hitPath } from "./hit-text.tsx";

export interface PaletteItem {
  readonly id: string;
  readonly group: "Sessions" | "Pages" | "Actions" | "Messages";
  readonly name: string;
  readonly note?: string;
  readonly thread?: number;
  readonly hit?: SearchHit & { readonly userId?: string };
  /** The URL to open, or the action to run. */
  readonly act: string | (() => Promise<string | null> | null);
}

const maxSessions = 8;
const maxMessages = 6;

const pages = {
  "/": "Home",
  "/sessions": "Sessions",
  "/runs": "Runs",
  "/runs?tab=approvals": "Approvals",
  "/runs?tab=outbox": "Outbox",
  "/search": "Search",
  "/usage": "Usage",
  "/access": "Access",
  "/access?tab=tokens": "Tokens",
} as const;

/** The palette's items for the typed text: sessions, pages and actions by name, and messages that contain `words`. */
export function usePaletteItems(
  text: string,
  words: string,
): {
  readonly items: readonly PaletteItem[];
  readonly isSearching: boolean;
} {
  const sessions = useSessionItems();
  const actions = useActions();
  const messages = useMessages(words.trim());
  return useMemo(() => {
    const typed = text.trim();
    const pageItems = Object.entries(pages).map(
      ([path, name]): PaletteItem => ({ id: path, group: "Pages", name, act: path }),
    );
    return {
      items: [
        ...best(sessions, typed).slice(0, maxSessions),
        ...best(pageItems, typed),
        ...best(actions, typed),
        ...messages.items,
      ],
      isSearching: messages.isSearching,
    };
  }, [text, sessions, actions, messages]);
}

function useSessionItems(): readonly PaletteItem[] {
  const { client } = useGateway();
  const { rows, approvals } = useDesk();
  return useMemo(() => {
    const waiting = new Set(approvals.map((approval) => idOf(placeOf(approval))));
    const order = { "needs-you": 0, working: 1, done: 2 };
    return rows
      .map((row) => ({ row, part: partOf(row, waiting) }))
      .sort((a, b) => order[a.part] - order[b.part])
      .map(
        ({ row, part }): PaletteItem => ({
          id: `session ${idOf(row)}`,
          group: "Sessions",
          name: fullName(client, row),
          ...(part === "needs-you" ? { note: "needs you" } : part === "working" ? { note: "working" } : {}),
          thread: threadOf(row.sessionId),
          act: sessionPath(placeOf(row)),
        }),
      );
  }, [client, rows, approvals]);
}

function useActions(): readonly PaletteItem[] {
  const change = useChange();
  const [path] = useLocation();
  const [query] = useSearchParams();
  const mayCreate = useMay("sessions.create");
  const maySignOut = useMay("tokens.revokeOwn");
  return useMemo(() => {
    const open = placeOfPath(path, query);
    const user = currentUser(query);
    const place = open ?? { key: "main", ...user };
    const here = open === null ? "of main" : "of this session";
    const create = async () => {
      const { key } = await change("sessions.create", user);
      return sessionPath({ key, ...user });
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
      action("keys", hasLetterKeys() ? "Turn single-letter keys off" : "Turn single-letter keys on", () => {
        setLetterKeys(!hasLetterKeys());
        return null;
      }),
      ...(maySignOut ? [action("sign out", "Sign out…", accessPath({ tab: "tokens", do: "sign-out" }))] : []),
    ];
  }, [change, path, query, mayCreate, maySignOut]);
}

/** The user that the open page belongs to. */
function currentUser(query: URLSearchParams): { userId?: string } {
  return userParam({ userId: query.get("user") || undefined });
}

/** The last search's results stay until the next ones arrive, so that rows do not flicker while typing. */
function useMessages(words: string): {
  readonly items: readonly PaletteItem[];
  readonly isSearching: boolean;
} {
  const [query] = useSearchParams();
  const { userId } = currentUser(query);
  const isWanted = words.length > 1;
  const { data, isFetching } = useCall(
    "sessions.search",
    { query: words === "" ? " " : words, limit: maxMessages, ...userParam({ userId }) },
    { isEnabled: isWanted, keepsPrevious: true },
  );
  return useMemo(() => {
    const items = (isWanted ? (data?.hits ?? []) : []).map(
      (hit): PaletteItem => ({
        id: `hit ${hit.sessionId} ${hit.entryId}`,
        group: "Messages",
        name: hit.key,
        thread: threadOf(hit.sessionId),
        hit: { ...hit, ...userParam({ userId }) },
        act: hitPath(hit, userId),
      }),
    );
    const more: PaletteItem = {
      id: "all",
      group: "Messages",
      name: `Search for “${words}” in all sessions`,
      act: searchPath({ q: words, user: userId }),
    };
    return { items: isWanted ? [...items, more] : [], isSearching: isFetching };
  }, [data, isWanted, isFetching, words, userId]);
}

/** Returns the matching items, best first. If nothing was typed, returns all items in their order. */
function best(items: readonly PaletteItem[], typed: string): readonly PaletteItem[] {
  if (typed === "") return items;
  return items
    .map((item) => ({ item, score: scoreOf(item.name, typed) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ item }) => item);
}

/**
 * Returns 4 if the name begins with the text, 3 if one of its words does, 2 if it contains the text, 1 if it contains
 * the text's letters in order, and 0 otherwise.
 */
function scoreOf(name: string, typed: string): number {
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
