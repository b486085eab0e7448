import { Suspense } from "react";
import { Link } from "wouter";
import { errorText, useCall, useGateway, useMay } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import type { SessionPlace } from "../paths.ts";
import { accessPath, ownerOf, sessionPath } from "../paths.ts";
import { lazyPart } from "../ui/lazy-part.tsx";
import { Notice } from "../ui/notice.tsx";
import { PageBoundary } from "../ui/page-boundary.tsx";
import { useShownForks } from "./forks.ts";
import styles from "./home-page.module.css";
import { SessionView } from "./session-page.tsx";

const FamilyLanes = lazyPart(() => import("../family/family-lanes.tsx"));

/** The rehearsal model spends the given number of seconds on each task, so that users can watch the lanes grow. */
const firstMessage =
  "spawn three helpers to describe the view from the terrace in 3 seconds; compare two menus for dinner in 5 seconds; plan a rainy day in 6 seconds and summarize";

/** The first page: the main session with its family next to it, and a message that is ready to send. */
export function HomePage() {
  const agents = useCall("agents.list", {});
  if (agents.error !== null) return <Notice text={errorText(agents.error)} isError />;
  if (agents.data === undefined) return <Notice text="Loading…" isBusy />;
  const agent = agents.data.agents.find(({ isDefault }) => isDefault) ?? agents.data.agents[0];
  if (agent === undefined) return <Notice text="No agents are configured. Add one to skein.yaml." />;
  const place = { key: `agent:${agent.id}:main` };
  return (
    <SessionView
      place={place}
      prefill={agent.model?.startsWith("rehearsal/") === true ? firstMessage : ""}
      hints={<Hints place={place} />}
      side={
        <aside className={styles.side}>
          <PageBoundary path={place.key}>
            <Suspense fallback={null}>
              <FamilyLanes place={place} />
            </Suspense>
          </PageBoundary>
        </aside>
      }
    />
  );
}

/** Three questions that no other console answers, each one click away. */
function Hints({ place }: { readonly place: SessionPlace }) {
  const { client } = useGateway();
  const { rows } = useDesk();
  const owner = ownerOf(client, place);
  const forks = useShownForks();
  const mayExplain = useMay("access.explain");
  const history = useCall("chat.history", { sessionKey: place.key, limit: 20 });
  const answer = history.data?.messages.findLast(({ role }) => role === "assistant");
  const steps = [...forks.values()];
  const second = steps.find(({ position, next }) => position === 1 && next?.branch !== undefined)?.next;
  // The session may have gone on with the second one.
  const first = steps.find(
    ({ position, previous }) => position === 2 && previous?.branch !== undefined,
  )?.previous;
  const branch = second ?? first;
  const other = rows.find(
    (row) => ownerOf(client, row) === owner && /^agent:[^:]+:main$/.test(row.key) && row.key !== place.key,
  );
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
        <Link href={accessPath({ from: other.key, to: place.key, action: "history" })}>
          Why may {other.key.split(":")[1]} read {place.key.split(":")[1]}?
        </Link>
      )}
    </nav>
  );
}
