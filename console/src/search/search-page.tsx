import { useInfiniteQuery } from "@tanstack/react-query";
import { GitBranch, X } from "lucide-react";
import type { KeyboardEvent, RefObject } from "react";
import { useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import type { Params, Result } from "skein/client";
import { Link, useLocation } from "wouter";
import { errorText, useGateway } from "../connect/gateway.tsx";
import { useSessionNames } from "../live/session-names.ts";
import { userParam } from "../paths.ts";
import { roleWord } from "../session/rows.ts";
import buttons from "../ui/button.module.css";
import choices from "../ui/choice.module.css";
import { Choice, UserChoice } from "../ui/choice.tsx";
import { isInputMethod, Kbd } from "../ui/keys.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { useTitle } from "../ui/page.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { useDelayedField, useQueryFields } from "../ui/query-fields.ts";
import { useRoving } from "../ui/roving.ts";
import { threadOf } from "../ui/theme.ts";
import { entryTime, fullTime } from "../ui/time.ts";
import { HitText, hitPath } from "./hit-text.tsx";
import styles from "./search-page.module.css";

const roles = {
  "": "everyone",
  user: "people and sessions",
  assistant: "agents",
  toolResult: "tools",
} as const;
const groups = { "": "every result", session: "the best from each session" } as const;
const ages = { "": "any time", "1": "last 24 hours", "7": "last 7 days", "30": "last 30 days" } as const;
const pageSize = 25;
const hourMs = 3_600_000;

/** `/search?q=&role=&days=&group=&key=&user=`: full-text search in every session, on every branch. */
export default function SearchPage() {
  const [query, change] = useQueryFields();
  const words = query.get("q") ?? "";
  const userId = query.get("user") ?? undefined;
  const key = query.get("key");
  const search = useSearchHits(words.trim(), {
    role: query.get("role"),
    days: query.get("days"),
    bySession: query.get("group") === "session",
    key,
    userId,
  });
  const names = useSessionNames(
    useMemo(() => search.hits.map((hit) => ({ key: hit.key, userId })), [search.hits, userId]),
  );
  const ids = useMemo(() => search.hits.map((_, index) => String(index)), [search.hits]);
  const roving = useRoving(ids);
  const input = useRef<HTMLInputElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" || (event.key === "ArrowUp" && roving.stop === "0")) input.current?.focus();
    else roving.onKeyDown(event);
  };
  useTitle(words === "" ? "Search" : `Search: ${oneLine(words, 60)}`);
  return (
    <section className={styles.page} aria-label="Search">
      <h1 className="visually-hidden">Search</h1>
      <header className={styles.head}>
        <WordsField
          ref={input}
          words={words}
          onChange={(q) => change({ q: q || null }, { replace: true })}
          isCurrent={search.isCurrent}
          first={search.hits[0] === undefined ? null : hitPath(search.hits[0], userId)}
          onDown={() => roving.focus("0")}
        />
        <div className={`${styles.filters} ${choices.menus}`} data-scroll-cue>
          <Choice
            label="By"
            value={query.get("role") ?? ""}
            options={roles}
            onChange={(role) => change({ role: role || null })}
          />
          <Choice
            label="From"
            value={query.get("days") ?? ""}
            options={ages}
            onChange={(days) => change({ days: days || null })}
          />
          <Choice
            label="Show"
            value={query.get("group") ?? ""}
            options={groups}
            onChange={(group) => change({ group: group || null })}
          />
          <UserChoice />
          {key !== null && (
            <button type="button" className={buttons.button} onClick={() => change({ key: null })}>
              in {names.nameOf({ key, userId })} <X size={12} aria-label="Search everywhere" />
            </button>
          )}
        </div>
      </header>
      <div ref={roving.list} className={styles.results} onKeyDown={onKeyDown} aria-busy={search.isLoading}>
        {words.trim() === "" ? (
          <Notice text='Searches every message, answer and tool result, on every branch of every session. Enter words or a question. "Quoted words" must occur exactly; -word must not occur.' />
        ) : search.error !== null && search.isFailed ? (
          <ErrorNotice error={search.error} />
        ) : search.isLoading ? (
          <Notice text="Searching…" isBusy />
        ) : search.hits.length === 0 ? (
          <Notice text="No results. Try fewer words or clear the filters." />
        ) : (
          <ol className={styles.list} aria-label="Results">
            {search.hits.map((hit, index) => (
              <li
                key={`${hit.sessionId} ${hit.entryId} ${index}`}
                className={styles.hit}
                data-thread={threadOf(hit.sessionId)}
              >
                <Link href={hitPath(hit, userId)} className={styles.link} {...roving.item(String(index))}>
                  <span className={styles.line}>
                    <b dir="auto">{names.nameOf({ key: hit.key, userId })}</b>
                    <span>{roleWord(hit.role)}</span>
                    {!hit.active && (
                      <span className={styles.branch}>
                        <GitBranch size={12} aria-hidden /> on another branch
                      </span>
                    )}
                    <time title={fullTime(hit.time)}>{entryTime(hit.time)}</time>
                  </span>
                  <span className={styles.snippet} dir="auto">
                    <HitText hit={hit} />
                  </span>
                </Link>
              </li>
            ))}
          </ol>
        )}
        {search.behind > 0 && (
          <p className={styles.note}>
            {search.behind === 1
              ? "1 session is not indexed yet. Results from it may be missing."
              : `${search.behind} sessions are not indexed yet. Results from them may be missing.`}
          </p>
        )}
        {search.hasMore && (
          <p className={styles.note}>
            <button
              type="button"
              className={buttons.button}
              disabled={search.isLoadingMore}
              onClick={search.loadMore}
            >
              {search.isLoadingMore ? "Searching…" : search.error === null ? "Show more" : "Retry"}
            </button>{" "}
            {search.error !== null && <span role="alert">{errorText(search.error)}</span>}
          </p>
        )}
      </div>
    </section>
  );
}

/**
 * The typed text is written to the URL after a pause. Enter opens the first result for the current text, even if it
 * arrives later. The down arrow moves to the results.
 */
function WordsField({
  ref,
  words,
  onChange,
  isCurrent,
  first,
  onDown,
}: {
  readonly ref: RefObject<HTMLInputElement | null>;
  readonly words: string;
  readonly onChange: (words: string) => void;
  /** Whether the results belong to `words`. */
  readonly isCurrent: boolean;
  readonly first: string | null;
  readonly onDown: () => void;
}) {
  const [text, setText] = useDelayedField(words, onChange);
  const [, navigate] = useLocation();
  const [entered, setEntered] = useState<string | null>(null);
  const openFirst = useEffectEvent(() => {
    setEntered(null);
    if (first !== null) navigate(first);
  });
  useEffect(() => {
    if (isCurrent && entered === words) openFirst();
  }, [isCurrent, entered, words]);
  return (
    <div className={styles.field} role="search">
      <input
        ref={ref}
        autoFocus
        type="search"
        value={text}
        maxLength={1000}
        aria-label="Search all sessions"
        placeholder="Search all sessions"
        onChange={({ target }) => {
          setEntered(null);
          setText(target.value);
        }}
        onKeyDown={(event) => {
          if (isInputMethod(event)) return;
          if (event.key === "ArrowDown") {
            event.preventDefault();
            onDown();
          }
          if (event.key === "Enter" && text.trim() !== "") {
            setEntered(text);
            onChange(text);
          }
        }}
      />
      <span className={styles.hint} aria-hidden>
        <Kbd keys="↓" /> results <Kbd keys="Enter" /> first one
      </span>
    </div>
  );
}

interface HitFilter {
  readonly role: string | null;
  readonly days: string | null;
  readonly bySession: boolean;
  readonly key: string | null;
  readonly userId: string | undefined;
}

function useSearchHits(words: string, { role, days, bySession, key, userId }: HitFilter) {
  const { client } = useGateway();
  // Rounded down to the hour, so that the query seldom changes while the page is open.
  const since =
    days === null ? undefined : Math.floor(Date.now() / hourMs) * hourMs - Number(days) * 24 * hourMs;
  const params: Params<"sessions.search"> = {
    query: words,
    limit: pageSize,
    ...(role === null ? {} : { role }),
    ...(since === undefined || Number.isNaN(since) ? {} : { since }),
    ...(bySession ? { bySession } : {}),
    ...(key === null ? {} : { key }),
    ...userParam({ userId }),
  };
  const found = useInfiniteQuery({
    queryKey: ["sessions.search", params],
    queryFn: ({ pageParam, signal }) =>
      client.call(
        "sessions.search",
        { ...params, ...(pageParam === null ? {} : { cursor: pageParam }) },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page: Result<"sessions.search">) => page.nextCursor ?? null,
    enabled: words !== "",
    placeholderData: (previous) => (words === "" ? undefined : previous),
  });
  const pages = found.data?.pages;
  return {
    hits: useMemo(() => (pages ?? []).flatMap(({ hits }) => hits), [pages]),
    behind: pages?.at(-1)?.indexing?.behind ?? 0,
    error: found.error,
    isFailed: found.isError && found.data === undefined,
    isLoading: found.isPending,
    isCurrent: found.isSuccess && !found.isPlaceholderData,
    hasMore: found.hasNextPage,
    isLoadingMore: found.isFetchingNextPage,
    loadMore: () => void found.fetchNextPage(),
  };
}
