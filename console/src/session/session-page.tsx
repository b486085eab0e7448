import { Search } from "lucide-react";
import type { ReactNode } from "react";
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { Link, useSearchParams } from "wouter";
import { useCall, useGateway, useMay } from "../connect/gateway.tsx";
import type { TranscriptPlace } from "../live/transcript.ts";
import { Transcript } from "../live/transcript.ts";
import { Notice } from "../ui/notice.tsx";
import { SessionViewPage, useRoutePlace } from "../ui/session-head.tsx";
import { shortCount } from "../ui/time.ts";
import { Composer } from "./composer.tsx";
import { FindBar, useFind } from "./find-bar.tsx";
import { useForks } from "./forks.ts";
import { PendingInputs } from "./pending-inputs.tsx";
import styles from "./session-page.module.css";
import type { SessionPlace } from "./session-place.ts";
import { SessionPlaceProvider, sessionPath } from "./session-place.ts";
import { ThreadRail } from "./thread-rail.tsx";
import { TranscriptView, useItems } from "./transcript-view.tsx";

/** `/s/<key>?user=&branch=&entry=`: a session's transcript. */
export function SessionPage() {
  const session = useRoutePlace();
  const [query] = useSearchParams();
  const leafId = query.get("branch");
  const around = query.get("entry");
  const place = {
    ...session,
    ...(leafId === null ? {} : { leafId }),
    ...(around === null ? {} : { around }),
  };
  return <SessionView key={JSON.stringify(place)} place={place} />;
}

interface SessionViewProps {
  readonly place: TranscriptPlace;
  /** The first text of the composer. */
  readonly prefill?: string;
  /** Stands between the transcript and the composer. */
  readonly hints?: ReactNode;
  /** Stands at the right of the transcript. */
  readonly side?: ReactNode;
}

export function SessionView({ place, prefill = "", hints, side }: SessionViewProps) {
  const { client } = useGateway();
  const [transcript] = useState(() => new Transcript(client, place));
  useEffect(() => {
    transcript.open();
    return () => transcript.close();
  }, [transcript]);
  const state = useSyncExternalStore(transcript.subscribe, transcript.state);
  const { key, userId } = place;
  const session = useMemo(
    (): SessionPlace => ({ key, ...(userId === undefined ? {} : { userId }) }),
    [key, userId],
  );
  const items = useItems(state);
  const forks = useForks(session, state.entries.length);
  const find = useFind(items, transcript);
  const [travel, setTravel] = useState<{ readonly id: string } | null>(
    place.around === undefined ? null : { id: place.around },
  );
  const loadEarlier = useCallback(() => void transcript.loadEarlier(), [transcript]);
  const loadLater = useCallback(() => void transcript.loadLater(), [transcript]);
  const maySend = useMay("chat.send");
  const isWorking = state.live.length > 0 || state.pending.some((input) => input.state === "running");
  const details = useCall("sessions.get", session, { staleMs: 1000 });
  const agentId = details.data?.agentId ?? "agent";

  if (state.status === "failed")
    return <Notice text={state.error ?? "The session could not be read."} isError />;
  return (
    <SessionPlaceProvider value={session}>
      <SessionViewPage
        place={session}
        view=""
        tools={
          <>
            <span className={styles.facts}>
              {details.data?.model !== undefined && <span>{details.data.model}</span>}
              {details.data?.contextTokens !== undefined && (
                <span>{shortCount(details.data.contextTokens)} tokens</span>
              )}
            </span>
            <button
              type="button"
              className={styles.find}
              onClick={find.open}
              title="Find in session (Ctrl+F)"
            >
              <Search size={14} aria-hidden /> Find
            </button>
          </>
        }
      >
        <div className={styles.page}>
          {find.isOpen && <FindBar find={find} />}
          <div className={styles.columns}>
            <ThreadRail items={items} forks={forks} onTravel={(id) => setTravel({ id })} />
            {state.status === "loading" ? (
              <Notice text="Reading the session…" isBusy />
            ) : items.length === 0 ? (
              <Notice text="Nothing was said here yet." />
            ) : (
              <TranscriptView
                items={items}
                agentId={agentId}
                hasEarlier={state.hasEarlier}
                loadEarlier={loadEarlier}
                hasLater={state.hasLater}
                loadLater={loadLater}
                target={find.target ?? travel}
                highlight={find.isOpen ? find.words : ""}
                forks={forks}
              />
            )}
            {items.length > 0 && side}
          </div>
          <PendingInputs pending={state.pending} />
          {hints}
          {place.leafId !== undefined ? (
            <OtherBranch place={session} leafId={place.leafId} />
          ) : (
            maySend && (
              <Composer
                isWorking={isWorking}
                runIds={state.live.map(({ runId }) => runId)}
                initialText={prefill}
                onSent={() => setTravel(null)}
              />
            )
          )}
        </div>
      </SessionViewPage>
    </SessionPlaceProvider>
  );
}

/** Stands where the composer is: reading a branch does not move the session to it. */
function OtherBranch({ place, leafId }: { readonly place: SessionPlace; readonly leafId: string }) {
  return (
    <p className={styles.branch}>
      You are reading another branch. Messages still go to the active one.{" "}
      <Link href={sessionPath(place)}>Back to the active branch</Link>{" "}
      <Link href={sessionPath(place, "tree", { entry: leafId })}>Continue from here in the tree</Link>
    </p>
  );
}
