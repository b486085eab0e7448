import { useDesk } from "../frame.tsx";
import type { RunsPart } from "../paths.ts";
import { runsPath } from "../paths.ts";
import { Choice } from "../ui/choice.tsx";
import { useQueryFields } from "../ui/query-fields.ts";
import { TabbedPage } from "../ui/tabbed-page.tsx";
import { ApprovalsTab } from "./approvals-tab.tsx";
import type { OutboxShown } from "./outbox-tab.tsx";
import { OutboxTab, useOutbox } from "./outbox-tab.tsx";
import { RunsTab } from "./runs-tab.tsx";
import type { RunsShown } from "./use-runs.ts";

const runsShown = { all: "All", open: "Open", failed: "Failed" } as const satisfies Record<RunsShown, string>;
const outboxShown = {
  undelivered: "Undelivered",
  delivered: "Delivered",
  all: "All",
} as const satisfies Record<OutboxShown, string>;

/** `/runs?tab=runs|approvals|outbox`: running work, calls waiting for a person, and messages waiting for a channel. */
export default function RunsPage() {
  const [query, change] = useQueryFields();
  const { approvals } = useDesk();
  const undelivered = useOutbox("undelivered");
  const tab = oneOf<RunsPart>(query.get("tab"), { runs: "", approvals: "", outbox: "" }, "runs");
  const shown = query.get("show");
  const session = query.get("session");
  // Without `session`, `user` identifies the user of the run in the panel and is not a filter.
  const fields = ["show", "lane", "session", ...(session === null ? [] : ["user"])];
  const more = Object.fromEntries(
    fields.flatMap((name) => {
      const value = query.get(name);
      return value === null ? [] : [[name, value]];
    }),
  ) as Record<string, string>;
  return (
    <TabbedPage
      title="Runs"
      tabs={[
        { name: "Runs", href: runsPath("runs"), isCurrent: tab === "runs" },
        {
          name: "Approvals",
          href: runsPath("approvals"),
          isCurrent: tab === "approvals",
          count: approvals.length,
          isAlarm: true,
        },
        {
          name: "Outbox",
          href: runsPath("outbox"),
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
            onChange={(value) => change({ show: value })}
          />
        ) : tab === "outbox" ? (
          <Choice
            label="Show"
            value={oneOf<OutboxShown>(shown, outboxShown, "undelivered")}
            options={outboxShown}
            onChange={(value) => change({ show: value })}
          />
        ) : undefined
      }
    >
      {tab === "runs" && (
        <RunsTab
          key={JSON.stringify(more)}
          filter={{
            shown: oneOf<RunsShown>(shown, runsShown, "all"),
            lane: query.get("lane"),
            session,
            userId: query.get("user"),
          }}
          runId={query.get("run")}
          userId={query.get("user")}
          more={more}
        />
      )}
      {tab === "approvals" && <ApprovalsTab wanted={query.get("approval")} />}
      {tab === "outbox" && (
        <OutboxTab key={shown} shown={oneOf<OutboxShown>(shown, outboxShown, "undelivered")} />
      )}
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
