import { lazy, Suspense } from "react";
import { Link } from "wouter";
import { errorText, useCall, useMay } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import { Notice } from "../ui/notice.tsx";
import { useForks } from "./forks.ts";
import styles from "./home-page.module.css";
import { SessionView } from "./session-page.tsx";
import { sessionPath } from "./session-place.ts";

const FamilyLanes = lazy(() =>
  import("../family/family-lanes.tsx").then((module) => ({ default: module.FamilyLanes })),
);

const firstMessage =
  "spawn three helpers to describe the view from the terrace; compare two menus for dinner; plan a rainy day and summarize";

/** The first page: the main session with its family at its side, and a message that is ready to be sent. */
export function HomePage() {
  const agents = useCall("agents.list", {});
  if (agents.error !== null) return <Notice text={errorText(agents.error)} isError />;
  if (agents.data === undefined) return <Notice text="Reading the agents…" isBusy />;
  const agent = agents.data.agents.find(({ isDefault }) => isDefault) ?? agents.data.agents[0];
  if (agent === undefined) return <Notice text="No agent is configured. Add one to skein.yaml." />;
  const place = { key: `agent:${agent.id}:main` };
  return (
    <SessionView
      place={place}
      prefill={agent.model?.startsWith("rehearsal/") === true ? firstMessage : ""}
      hints={<Hints place={place} />}
      side={
        <aside className={styles.side}>
          <Suspense fallback={null}>
            <FamilyLanes place={place} />
          </Suspense>
        </aside>
      }
    />
  );
}

/** Three questions that no other console answers, each one click away. */
function Hints({ place }: { readonly place: { readonly key: string } }) {
  const { rows } = useDesk();
  const forks = useForks(place, 0);
  const mayExplain = useMay("access.explain");
  const branch = [...forks.values()]
    .map(({ previous, next }) => previous?.branch ?? next?.branch)
    .find((leaf) => leaf !== undefined);
  const other = rows.find(({ key }) => /^agent:[^:]+:main$/.test(key) && key !== place.key);
  return (
    <nav className={styles.hints} aria-label="Start here">
      <Link href={sessionPath(place, "context")}>See what the model sees</Link>
      {branch !== undefined && <Link href={sessionPath(place, "", { branch })}>Open the second branch</Link>}
      {other !== undefined && mayExplain && (
        <Link href={`/access?${new URLSearchParams({ from: other.key, to: place.key }).toString()}`}>
          Why may {other.key.split(":")[1]} read {place.key.split(":")[1]}?
        </Link>
      )}
    </nav>
  );
}
