import { useEffect, useState } from "react";
import { useSearchParams } from "wouter";
import { useGateway } from "../connect/gateway.tsx";
import type { DeskFilter, SessionRow } from "../live/desk.ts";
import { Choice } from "../ui/choice.tsx";
import styles from "./desk-page.module.css";

const kinds = ["main", "group", "cron", "hook", "node", "other"] as const;
const states = { needs_you: "needs you", working: "working", failed: "failed", done: "done" } as const;
const sorts = {
  updated: "Last active",
  created: "Newest",
  tokens: "Tokens",
  cost: "Cost",
  name: "Name",
} as const;

/** The filter in the address, so that a reload and a shared link show the same sessions. */
export function readFilter(query: URLSearchParams): DeskFilter {
  const [kind, agent, user, channel, state, text, sort] = [
    "kind",
    "agent",
    "user",
    "channel",
    "state",
    "q",
    "sort",
  ].map((name) => query.get(name) || undefined);
  return {
    ...(isOneOf(kinds, kind) ? { kinds: [kind] } : {}),
    ...(agent === undefined ? {} : { agentId: agent }),
    ...(user === undefined ? {} : { userId: user }),
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

/** One field of the filter, and how to change it without a new place in the history. */
function useFilterFields() {
  const [query, setQuery] = useSearchParams();
  return {
    fieldOf: (name: string) => query.get(name) ?? "",
    change: (name: string, next: string) =>
      setQuery(
        (before) => {
          const changed = new URLSearchParams(before);
          if (next === "") changed.delete(name);
          else changed.set(name, next);
          return changed;
        },
        { replace: true },
      ),
  };
}

export function DeskFilters({ rows }: { readonly rows: readonly SessionRow[] }) {
  const { fieldOf, change } = useFilterFields();
  const { client } = useGateway();
  // A chosen value stays in the menu although no loaded row has it.
  const valuesOf = (name: string, of: (row: SessionRow) => string | undefined) =>
    [...new Set([fieldOf(name), ...rows.map(of)])]
      .filter((each) => each !== undefined && each !== "")
      .sort()
      .map((each) => [each, each]);
  const menu = (label: string, name: string, options: Readonly<Record<string, string>>) => (
    <Choice
      label={label}
      value={fieldOf(name)}
      options={{ "": "any", ...options }}
      onChange={(next) => change(name, next)}
    />
  );
  return (
    <search className={styles.filters}>
      <TextFilter value={fieldOf("q")} onChange={(next) => change("q", next)} />
      {menu("State", "state", states)}
      {menu("Kind", "kind", Object.fromEntries(kinds.map((each) => [each, each])))}
      {menu(
        "Agent",
        "agent",
        Object.fromEntries(valuesOf("agent", ({ key }) => /^agent:([^:]+):/.exec(key)?.[1])),
      )}
      {client.hello.allUsers &&
        menu("User", "user", Object.fromEntries(valuesOf("user", ({ userId }) => userId)))}
      {menu("Channel", "channel", Object.fromEntries(valuesOf("channel", ({ channel }) => channel)))}
    </search>
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
          onChange={({ target }) => change("archived", target.checked ? "1" : "")}
        />{" "}
        Archived
      </label>
      <Choice
        label="Sort"
        value={fieldOf("sort") || "updated"}
        options={sorts}
        onChange={(next) => change("sort", next === "updated" ? "" : next)}
      />
    </>
  );
}

/** Searches a moment after the last letter. */
function TextFilter({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text), 200);
    return () => clearTimeout(timer);
  });
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
