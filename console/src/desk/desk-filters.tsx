import { useCall, useGateway, useMay } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import type { DeskFilter } from "../live/desk.ts";
import { kindWords } from "../live/session-row.ts";
import choices from "../ui/choice.module.css";
import { Choice } from "../ui/choice.tsx";
import { useDelayedField, useQueryFields } from "../ui/query-fields.ts";
import styles from "./desk-page.module.css";

const kinds = { ...kindWords, other: "sub-agent or other" } as const;
const states = { needs_you: "needs you", working: "working", failed: "failed", done: "done" } as const;
const sorts = {
  updated: "Last active",
  created: "Newest",
  tokens: "Tokens",
  cost: "Cost",
  name: "Name",
} as const;

/**
 * The filter in the URL, so that a reload or a shared link shows the same sessions. An empty `user` is the unnamed
 * user.
 */
export function readFilter(query: URLSearchParams): DeskFilter {
  const [kind, agent, channel, state, text, sort] = ["kind", "agent", "channel", "state", "q", "sort"].map(
    (name) => query.get(name) || undefined,
  );
  const user = query.get("user");
  return {
    ...(isOneOf(Object.keys(kinds) as (keyof typeof kinds)[], kind) ? { kinds: [kind] } : {}),
    ...(agent === undefined ? {} : { agentId: agent }),
    ...(user === null ? {} : { userId: user }),
    ...(channel === undefined ? {} : { channels: [channel] }),
    ...(isOneOf(Object.keys(states) as (keyof typeof states)[], state) ? { states: [state] } : {}),
    ...(text === undefined ? {} : { search: text }),
    ...(query.get("archived") === "1" ? { archived: true } : {}),
    ...(isOneOf(Object.keys(sorts) as (keyof typeof sorts)[], sort) && sort !== "updated" ? { sort } : {}),
  };
}

function isOneOf<T extends string>(values: readonly T[], value: string | undefined): value is T {
  return values.includes(value as T);
}

/** Reads the filter's fields and changes them without adding history entries. `null` removes a field's filter. */
function useFilterFields() {
  const [query, change] = useQueryFields();
  return {
    fieldOf: (name: string) => query.get(name),
    change: (name: string, next: string | null) => change({ [name]: next }, { replace: true }),
  };
}

export function DeskFilters() {
  const { fieldOf, change } = useFilterFields();
  const { client } = useGateway();
  const { rows } = useDesk();
  const agents = useCall("agents.list", {}).data?.agents ?? [];
  const mayListUsers = useMay("users.list") && client.hello.allUsers;
  const users = useCall("users.list", { limit: 500 }, { isEnabled: mayListUsers }).data?.users ?? [];
  const menu = (label: string, name: string, options: Readonly<Record<string, string>>) => (
    <FilterMenu
      label={label}
      value={fieldOf(name)}
      options={options}
      onChange={(next) => change(name, next)}
    />
  );
  return (
    <search className={styles.filters}>
      <TextFilter value={fieldOf("q") ?? ""} onChange={(next) => change("q", next === "" ? null : next)} />
      <div className={choices.menus} data-scroll-cue>
        {menu("State", "state", states)}
        {menu("Kind", "kind", kinds)}
        {menu("Agent", "agent", toOptions(agents.map(({ id }) => id)))}
        {mayListUsers &&
          menu("User", "user", { ...toOptions(users.map(({ userId }) => userId ?? "")), "": "default user" })}
        {menu("Channel", "channel", toOptions(rows.map(({ channel }) => channel)))}
      </div>
    </search>
  );
}

function toOptions(values: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries([...new Set(values)].sort().map((each) => [each, each]));
}

interface FilterMenuProps {
  readonly label: string;
  readonly value: string | null;
  readonly options: Readonly<Record<string, string>>;
  readonly onChange: (value: string | null) => void;
}

/** A menu with an “any” option. A selected value stays in the menu even if it is not among the options. */
function FilterMenu({ label, value, options, onChange }: FilterMenuProps) {
  const chosen = value === null || Object.hasOwn(options, value) ? {} : { [`=${value}`]: value };
  const named = Object.entries(options).map(([each, name]) => [`=${each}`, name] as const);
  return (
    <Choice
      label={label}
      value={value === null ? "any" : `=${value}`}
      options={{ any: "any", ...Object.fromEntries(named), ...chosen }}
      onChange={(next) => onChange(next === "any" ? null : next.slice(1))}
    />
  );
}

export function DeskOrder() {
  const { fieldOf, change } = useFilterFields();
  return (
    <>
      <label className={styles.archived}>
        <input
          type="checkbox"
          checked={fieldOf("archived") === "1"}
          onChange={({ target }) => change("archived", target.checked ? "1" : null)}
        />{" "}
        Archived
      </label>
      <Choice
        label="Sort"
        value={fieldOf("sort") ?? "updated"}
        options={sorts}
        onChange={(next) => change("sort", next === "updated" ? null : next)}
      />
    </>
  );
}

/** Searches shortly after the last keystroke. */
function TextFilter({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const [text, setText] = useDelayedField(value, onChange);
  return (
    <input
      type="search"
      className={styles.search}
      value={text}
      aria-label="Filter by name, label or key"
      placeholder="Name, label or key"
      onChange={({ target }) => setText(target.value)}
    />
  );
}
