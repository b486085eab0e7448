import { Tabs } from "@base-ui/react/tabs";
import { Suspense } from "react";
import { lazyPart } from "../ui/lazy-part.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { useQueryFields } from "../ui/query-fields.ts";
import { SessionViewPage, useRoutePlace } from "../ui/session-head.tsx";
import { useFamily, useNeedsYou } from "./family-data.ts";
import styles from "./family-page.module.css";
import { FamilyTable } from "./family-table.tsx";
import { LanesView } from "./lanes-view.tsx";

const FamilyGraph = lazyPart(() => import("./family-graph.tsx"));

const tabs = [
  ["lanes", "Lanes"],
  ["graph", "Graph"],
  ["table", "Table"],
] as const;

/** `/s/<key>/family?user=&tab=lanes|graph|table`: a session and all sessions that it spawned, forked or wrote to. */
export default function FamilyPage() {
  const place = useRoutePlace();
  const [query, change] = useQueryFields();
  const tab = tabs.find(([each]) => each === query.get("tab"))?.[0] ?? "lanes";
  const show = (next: string) => change({ tab: next === "lanes" ? null : next }, { replace: true });
  return (
    <Tabs.Root value={tab} onValueChange={show} className={styles.root}>
      <SessionViewPage
        place={place}
        view="family"
        tools={
          <Tabs.List className={styles.tabs} aria-label="Show as">
            {tabs.map(([value, name]) => (
              <Tabs.Tab key={value} value={value} className={styles.tab}>
                {name}
              </Tabs.Tab>
            ))}
          </Tabs.List>
        }
      >
        <Content tab={tab} />
      </SessionViewPage>
    </Tabs.Root>
  );
}

function Content({ tab }: { readonly tab: string }) {
  const place = useRoutePlace();
  const { data: family, error } = useFamily(place);
  const needsYou = useNeedsYou(place);
  if (family === undefined && error !== null) return <ErrorNotice error={error} />;
  if (family === undefined) return <Notice text="Loading the family…" isBusy />;
  return (
    <div className={styles.content}>
      {family.truncated && (
        <p className={styles.note} role="status">
          This family is too large to show in full. Only its most recently active sessions are shown.
        </p>
      )}
      <Tabs.Panel value={tab} className={styles.panel} tabIndex={-1}>
        {tab === "lanes" && <LanesView family={family} place={place} needsYou={needsYou} />}
        {tab === "graph" && (
          <Suspense fallback={<Notice text="Loading…" isBusy />}>
            <FamilyGraph family={family} place={place} needsYou={needsYou} />
          </Suspense>
        )}
        {tab === "table" && <FamilyTable family={family} place={place} needsYou={needsYou} />}
      </Tabs.Panel>
    </div>
  );
}
