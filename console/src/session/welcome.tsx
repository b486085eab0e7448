import type { ReactNode } from "react";
import { Suspense } from "react";
import { Link } from "wouter";
import { useCall, useGateway, useMay } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import { useHome } from "../live/home.ts";
import type { TranscriptState } from "../live/transcript.ts";
import type { SessionPlace } from "../paths.ts";
import { accessPath, ownerOf, sessionPath, userParam } from "../paths.ts";
import { lazyPart } from "../ui/lazy-part.tsx";
import { PageBoundary } from "../ui/page-boundary.tsx";
import { useShownForks } from "./forks.ts";
import { rowKind } from "./rows.ts";
import styles from "./welcome.module.css";

const FamilyLanes = lazyPart(() => import("../family/family-lanes.tsx"));

/** The rehearsal model spends the given number of seconds on each task, so that users can watch the lanes grow. */
const firstMessage =
  "spawn three helpers to describe the view from the terrace in 3 seconds; compare two menus for dinner in 5 seconds; plan a rainy day in 6 seconds and summarize";

/**
 * Whether a person has written to the session. The messages of a sample, which ends with its own entry, do not count.
 */
function hasPersonWritten({ entries, pending, hasEarlier }: TranscriptState): boolean {
  if (pending.length > 0) return true;
  const last = entries.findLast(
    (entry) =>
      (entry.type === "custom" && entry.customType === "skein.sample") ||
      (entry.type === "message" && entry.message.role === "user" && rowKind(entry) === "user"),
  );
  return last === undefined ? hasEarlier : last.type === "message";
}

interface Welcome {
  /** The composer's initial text. */
  readonly prefill: string;
  /** Shown between the transcript and the composer. */
  readonly hints: ReactNode;
  /** Shown to the right of the transcript. */
  readonly side: ReactNode;
}

/** Returns the home page's additions: the session's family, three suggestions, and a message that is ready to send. */
export function useWelcome(place: SessionPlace, state: TranscriptState): Welcome {
  const { agent, has } = useHome();
  if (!has(place)) return { prefill: "", hints: null, side: null };
  return {
    prefill: agent?.model?.startsWith("rehearsal/") === true && !hasPersonWritten(state) ? firstMessage : "",
    hints: <Hints place={place} />,
    side: (
      <aside className={styles.side}>
        <PageBoundary path={place.key}>
          <Suspense fallback={null}>
            <FamilyLanes place={place} />
          </Suspense>
        </PageBoundary>
      </aside>
    ),
  };
}

/** Links that answer three questions. */
function Hints({ place }: { readonly place: SessionPlace }) {
  const { client } = useGateway();
  const { status, rows } = useDesk();
  const owner = ownerOf(client, place);
  const forks = useShownForks();
  const mayExplain = useMay("access.explain");
  const history = useCall("chat.history", { sessionKey: place.key, limit: 20, ...userParam(place) });
  const answer = history.data?.messages.findLast(({ role }) => role === "assistant");
  // A link that arrives after the others would move them.
  const isLoading = status === "loading" || history.isPending || forks === null;
  const steps = [...(forks?.values() ?? [])];
  const second = steps.find(({ position, next }) => position === 1 && next?.branch !== undefined)?.next;
  // The session might continue on the second branch.
  const first = steps.find(
    ({ position, previous }) => position === 2 && previous?.branch !== undefined,
  )?.previous;
  const branch = second ?? first;
  const other = rows.find(
    (row) => ownerOf(client, row) === owner && /^agent:[^:]+:main$/.test(row.key) && row.key !== place.key,
  );
  if (isLoading) return null;
  return (
    <nav className={styles.hints} aria-label="Start here">
      {answer !== undefined && (
        <Link href={sessionPath(place, "context", { entry: answer.id })}>See what the model saw</Link>
      )}
      {branch && (
        <Link href={sessionPath(place, "", { ...branch })}>
          Open the {branch === second ? "second" : "first"} branch
        </Link>
      )}
      {other !== undefined && mayExplain && (
        <Link href={accessPath({ from: other.key, to: place.key, action: "history", user: place.userId })}>
          Why may {other.key.split(":")[1]} read {place.key.split(":")[1]}?
        </Link>
      )}
    </nav>
  );
}
