import { Search } from "lucide-react";
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { Link, useSearchParams } from "wouter";
import { errorText, useCall, useChange, useGateway, useMay, useOffline } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { isMain, useHome } from "../live/home.ts";
import type { TranscriptEntry, TranscriptState } from "../live/transcript.ts";
import type { TranscriptPlace } from "../live/transcript-reader.ts";
import { TranscriptReader } from "../live/transcript-reader.ts";
import type { SessionPlace } from "../paths.ts";
import { sessionPath, userParam } from "../paths.ts";
import { useLeafMoves } from "../tree/leaf-move.tsx";
import { useTree } from "../tree/tree-data.ts";
import buttons from "../ui/button.module.css";
import { Kbd } from "../ui/keys.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { SessionPlaceProvider, SessionViewPage, useRoutePlace } from "../ui/session-head.tsx";
import { requestTokens, shortCount } from "../ui/time.ts";
import { Composer, ComposerNotices, useLanding } from "./composer.tsx";
import { FailedRun } from "./failed-run.tsx";
import { FindBar, useFind } from "./find-bar.tsx";
import { ForksProvider, noForks, useForks } from "./forks.ts";
import { AnswerAnnouncer } from "./live-row.tsx";
import { PendingInputs } from "./pending-inputs.tsx";
import type { ReadingPosition } from "./reading-position.ts";
import { notePosition, readPosition } from "./reading-position.ts";
import { SessionApprovals } from "./session-approvals.tsx";
import styles from "./session-page.module.css";
import { ThreadRail } from "./thread-rail.tsx";
import type { Target } from "./transcript-view.tsx";
import { TranscriptView, useItems } from "./transcript-view.tsx";
import { useWelcome } from "./welcome.tsx";

/** `/`: the page of the default agent's main session. */
export function HomePage() {
  const { place, isLoading, error } = useHome();
  if (place !== null) return <SessionView place={place} />;
  if (isLoading) return <Notice text="Loading…" isBusy />;
  if (error !== null) return <ErrorNotice error={error} />;
  return <Notice text="No agents are configured. Add one to skein.yaml." />;
}

/** `/s/<key>?user=&branch=&entry=`: a session's transcript. */
export function SessionPage() {
  const session = useRoutePlace();
  const [query] = useSearchParams();
  const { isLoading } = useHome();
  const leafId = query.get("branch");
  const around = query.get("entry");
  const place = {
    ...session,
    ...(leafId === null ? {} : { leafId }),
    ...(around === null ? {} : { around }),
  };
  // This might turn out to be the home session, whose composer starts with a message.
  if (isLoading && isMain(session.key)) return <Notice text="Loading…" isBusy />;
  return <SessionView key={JSON.stringify(place)} place={place} />;
}

function SessionView({ place }: { readonly place: TranscriptPlace }) {
  const { client } = useGateway();
  const page = JSON.stringify(place);
  const [resumed] = useState(() => readPosition(page));
  const [reader] = useState(
    () => new TranscriptReader(client, resumed === null ? place : { ...place, resumeAt: resumed.id }),
  );
  const onRead = useCallback((position: ReadingPosition | null) => notePosition(page, position), [page]);
  useEffect(() => {
    reader.open();
    return () => reader.close();
  }, [reader]);
  const state = useSyncExternalStore(reader.subscribe, reader.state);
  const { key, userId } = place;
  const session = useMemo((): SessionPlace => ({ key, ...userParam({ userId }) }), [key, userId]);
  const { prefill, hints, side } = useWelcome(session, state);
  const { settled, items } = useItems(state);
  // A page might contain only entries that are not shown.
  const isEmptyPage = items.length === 0 && state.hasEarlier && state.loadError === null;
  useEffect(() => {
    if (isEmptyPage) void reader.loadEarlier();
  }, [reader, isEmptyPage, state.entries]);
  const branches = useTree(session);
  const forks = useForks(branches);
  const [target, setTarget] = useState<Target | null>(
    resumed ?? (place.around === undefined ? null : { id: place.around }),
  );
  const find = useFind(settled, reader, setTarget);
  const takesFocus = useLanding(place.around === undefined);
  const travel = useCallback(
    (id: string) => {
      const goal = { id };
      setTarget(goal);
      // If the entry cannot be loaded now, the transcript must not jump to it when the entry is loaded later for
      // another reason.
      void reader
        .goTo(id)
        .then((isLoaded) => isLoaded || setTarget((current) => (current === goal ? null : current)));
    },
    [reader],
  );
  const goToEnd = useCallback(async () => {
    await reader.goToEnd();
    setTarget({ id: null });
  }, [reader]);
  const details = useCall("sessions.get", session, { staleMs: 1000 });
  const maySend = useMay("chat.send");
  const agentId = details.data?.agentId ?? "agent";
  // The first message creates the main session if it does not exist yet.
  const isNew = state.status === "missing" && state.entries.length === 0 && isMain(key);

  return (
    <SessionPlaceProvider value={session}>
      <ForksProvider value={forks}>
        <SessionViewPage
          place={session}
          view=""
          tools={
            <>
              <span className={styles.facts}>
                {details.data?.model !== undefined && (
                  <span className={styles.model}>{oneLine(details.data.model)}</span>
                )}
                <ContextSize state={state} place={session} />
              </span>
              <button type="button" className={styles.find} onClick={find.open} title="Find in session">
                <Search size={14} aria-hidden /> Find <Kbd keys="Mod+F" />
              </button>
            </>
          }
        >
          <div className={styles.page}>
            {find.isOpen && <FindBar find={find} />}
            {(items.length > 0 || state.status === "ready") && (
              <ReadError state={state} onRetry={reader.retry} />
            )}
            <div className={styles.columns}>
              <ThreadRail
                tree={branches.tree}
                leafId={state.branchLeafId ?? branches.leafId}
                forks={forks ?? noForks}
                onTravel={travel}
              />
              {items.length > 0 ? (
                <TranscriptView
                  items={items}
                  agentId={agentId}
                  hasEarlier={state.hasEarlier}
                  loadEarlier={reader.loadEarlier}
                  hasLater={state.hasLater}
                  loadLater={reader.loadLater}
                  loadError={state.loadError}
                  target={target}
                  onRead={onRead}
                  highlight={find.words}
                  matches={find.matches}
                  forks={forks ?? noForks}
                />
              ) : state.status === "loading" || isEmptyPage ? (
                <Notice text="Loading…" isBusy />
              ) : state.status === "ready" || isNew ? (
                <Notice text={maySend ? "No messages yet. Write the first one below." : "No messages yet."} />
              ) : (
                <Notice text={state.error ?? "The session is not available."} isError>
                  {state.status === "failed" && (
                    <button type="button" className={buttons.button} onClick={reader.retry}>
                      Retry
                    </button>
                  )}
                  {(place.around ?? place.leafId) !== undefined && (
                    <Link href={sessionPath(session)}>Open the session</Link>
                  )}
                  <Link href="/sessions">All sessions</Link>
                </Notice>
              )}
              {items.length > 0 && side}
            </div>
            <AnswerAnnouncer state={state} agentId={agentId} />
            {state.status === "ready" && state.branchLeafId === null && (
              <>
                <FailedRun sessionKey={state.sessionKey ?? key} />
                <MovedLeaf place={session} leafId={state.leafId} />
              </>
            )}
            {state.status === "ready" && <PendingInputs pending={state.pending} initialText={prefill} />}
            {hints}
            {state.live.length > 0 && state.hasLater && state.branchLeafId === null && (
              <p className={styles.bar} role="status">
                The agent is working.{" "}
                <button type="button" onClick={() => void goToEnd()}>
                  Go to the end
                </button>
              </p>
            )}
            <ComposerNotices initialText={prefill} />
            {/* Nothing may appear below an approval later, because that would move its buttons. */}
            {state.status !== "loading" && state.status !== "failed" && <SessionApprovals />}
            <Foot
              state={state}
              isNew={isNew}
              place={session}
              prefill={prefill}
              onSent={goToEnd}
              takesFocus={takesFocus}
            />
          </div>
        </SessionViewPage>
      </ForksProvider>
    </SessionPlaceProvider>
  );
}

/** The size of the last request on the displayed branch. A later compaction makes the size obsolete. */
function ContextSize({ state, place }: { readonly state: TranscriptState; readonly place: SessionPlace }) {
  if (state.hasLater) return null;
  const last = state.entries.findLast(
    (entry) => entry.type === "compaction" || (countedTokens(entry) ?? 0) > 0,
  );
  const tokens = last === undefined ? null : countedTokens(last);
  if (last === undefined || tokens === null) return null;
  return (
    <Link
      href={sessionPath(place, "context", { entry: last.id })}
      title="Tokens in the request for the last answer shown here, as counted by the model"
    >
      {shortCount(tokens)} in context
    </Link>
  );
}

function countedTokens(entry: TranscriptEntry): number | null {
  const message = entry.type === "message" && entry.message.role === "assistant" ? entry.message : null;
  return message?.usage === undefined ? null : requestTokens(message.usage);
}

/** The displayed data might be outdated or incomplete. The page also retries on its own. */
function ReadError({ state, onRetry }: { readonly state: TranscriptState; readonly onRetry: () => void }) {
  const error = state.loadError ?? (state.status === "missing" ? null : state.error);
  if (error === null) return null;
  return (
    <p className={styles.bar} role="alert">
      {error}{" "}
      <button type="button" onClick={onRetry}>
        Retry
      </button>
    </p>
  );
}

interface FootProps {
  readonly state: TranscriptState;
  readonly isNew: boolean;
  readonly place: SessionPlace;
  readonly prefill: string;
  readonly onSent: () => void;
  readonly takesFocus: () => boolean;
}

/** The composer, or the reason why there is none. */
function Foot({ state, isNew, place, prefill, onSent, takesFocus }: FootProps) {
  const maySend = useMay("chat.send");
  const { status, live, pending, branchLeafId } = state;
  const sleeping = useSleepingRuns(state.sessionKey, place);
  if (status === "missing" && !isNew)
    return state.entries.length > 0 ? <DeletedSession place={place} /> : null;
  if (status !== "ready" && !isNew) return null;
  if (branchLeafId !== null)
    return <OtherBranch place={place} leafId={branchLeafId} isWorking={live.length > 0} />;
  if (!maySend) return null;
  return (
    <Composer
      isWorking={live.length > 0 || pending.some((input) => input.state === "running")}
      runIds={[...new Set([...live.map(({ runId }) => runId), ...sleeping])]}
      initialText={prefill}
      onSent={onSent}
      takesFocus={takesFocus}
    />
  );
}

/**
 * The runs that sleep until their sub-agents have ended. They write no answer while they sleep, but they can be
 * stopped.
 */
function useSleepingRuns(sessionKey: string | null, place: SessionPlace): readonly string[] {
  const { data } = useCall(
    "runs.list",
    { sessionKey: sessionKey ?? "", states: ["sleeping"], ...userParam(place) },
    { isEnabled: sessionKey !== null, staleMs: 0, keepsPrevious: true },
  );
  useRefresh(
    ["runs.list"],
    ({ event, payload }) =>
      (event === "run.sleeping" || event === "run.started" || event === "run.ended") &&
      "sessionKey" in payload &&
      payload.sessionKey === sessionKey,
  );
  return data?.runs.map(({ runId }) => runId) ?? [];
}

/** Lets the user go back after the conversation was continued from another entry. */
function MovedLeaf({ place, leafId }: { readonly place: SessionPlace; readonly leafId: string | null }) {
  const { move, error, undo } = useLeafMoves(place, leafId);
  const offline = useOffline();
  if (move === null) return null;
  return (
    <p className={styles.bar} role="status">
      The conversation continues from “{move.text}”.
      <button type="button" onClick={() => void undo()} {...offline}>
        Undo
      </button>
      {error !== null && <span role="alert"> {error}</span>}
    </p>
  );
}

/** Reading a branch does not move the session to it. */
function OtherBranch({
  place,
  leafId,
  isWorking,
}: {
  readonly place: SessionPlace;
  readonly leafId: string;
  readonly isWorking: boolean;
}) {
  return (
    <p className={styles.bar}>
      You are reading another branch. Messages still go to the active one
      {isWorking ? ", where the agent is working." : "."}{" "}
      <Link href={sessionPath(place)}>Back to the active branch</Link>{" "}
      <Link href={sessionPath(place, "tree", { entry: leafId })}>Continue from here in the tree</Link>
    </p>
  );
}

function DeletedSession({ place }: { readonly place: SessionPlace }) {
  const change = useChange();
  const offline = useOffline();
  const mayRestore = useMay("sessions.restore");
  const [error, setError] = useState<string | null>(null);
  const restore = () =>
    change("sessions.restore", place).catch((failure: unknown) => setError(errorText(failure)));
  return (
    <p className={styles.bar} role="status">
      This session was deleted. {error}{" "}
      {mayRestore && (
        <button type="button" onClick={() => void restore()} {...offline}>
          Restore
        </button>
      )}{" "}
      <Link href="/sessions">All sessions</Link>
    </p>
  );
}
