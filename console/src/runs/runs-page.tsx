import { useSearchParams } from "wouter";
import { useDesk } from "../frame.tsx";
import { Choice } from "../ui/choice.tsx";
import { TabbedPage } from "../ui/tabbed-page.tsx";
import { ApprovalsTab } from "./approvals-tab.tsx";
import type { OutboxShown } from "./outbox-tab.tsx";
import { OutboxTab, useOutbox } from "./outbox-tab.tsx";
import type { WorkTab } from "./runs-path.ts";
import { workPath } from "./runs-path.ts";
import { RunsTab } from "./runs-tab.tsx";
import type { RunsShown } from "./use-runs.ts";

const runsShown = { all: "All", open: "Open", failed: "Failed" } as const satisfies Record<RunsShown, string>;
const outboxShown = {
  undelivered: "Undelivered",
  delivered: "Delivered",
  all: "All",
} as const satisfies Record<OutboxShown, string>;

/** `/work?tab=runs|approvals|outbox`: what runs, what waits for a person, and what waits for a channel. */
export default function RunsPage() {
  const [query, setQuery] = useSearchParams();
  const { approvals } = useDesk();
  const undelivered = useOutbox("undelivered");
  const tab = oneOf<WorkTab>(query.get("tab"), { runs: "", approvals: "", outbox: "" }, "runs");
  const shown = query.get("show");
  const show = (value: string) =>
    setQuery((before) => {
      const next = new URLSearchParams(before);
      next.set("show", value);
      return next;
    });
  const more = Object.fromEntries(
    ["show", "lane", "session", "user"].flatMap((name) => {
      const value = query.get(name);
      return value === null ? [] : [[name, value]];
    }),
  ) as Record<string, string>;
  return (
    <TabbedPage
      title="Work"
      tabs={[
        { name: "Runs", href: workPath("runs"), isCurrent: tab === "runs" },
        {
          name: "Approvals",
          href: workPath("approvals"),
          isCurrent: tab === "approvals",
          count: approvals.length,
          isAlarm: true,
        },
        {
          name: "Outbox",
          href: workPath("outbox"),
          isCurrent: tab === "outbox",
          count: undelivered.data?.count ?? 0,
        },
      ]}
      tools={
        tab === "runs" ? (
          <Choice
            label="Show"
            value={oneOf<RunsShown>(shown, runsShown, "all")}
            options={runsShown}
            onChange={show}
          />
        ) : tab === "outbox" ? (
          <Choice
            label="Show"
            value={oneOf<OutboxShown>(shown, outboxShown, "undelivered")}
            options={outboxShown}
            onChange={show}
          />
        ) : undefined
      }
    >
      {tab === "runs" && (
        <RunsTab
          filter={{
            shown: oneOf<RunsShown>(shown, runsShown, "all"),
            lane: query.get("lane"),
            session: query.get("session"),
            userId: query.get("user"),
          }}
          runId={query.get("run")}
          userId={query.get("user")}
          more={more}
        />
      )}
      {tab === "approvals" && <ApprovalsTab wanted={query.get("approval")} />}
      {tab === "outbox" && <OutboxTab shown={oneOf<OutboxShown>(shown, outboxShown, "undelivered")} />}
    </TabbedPage>
  );
}

function oneOf<T extends string>(
  value: string | null,
  options: Readonly<Record<T, string>>,
  otherwise: T,
): T {
  return value !== null && Object.hasOwn(options, value) ? (value as T) : otherwise;
}
