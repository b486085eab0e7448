import { useMemo } from "react";
import type { Params, Result } from "skein/client";
import { Link } from "wouter";
import { useCall, useChange, useGateway, useMay, useOffline } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { useSessionNames } from "../live/session-names.ts";
import { placeOf, sessionPath, userParam, usersParam } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { Kbd, useKeys } from "../ui/keys.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { previewLine } from "../ui/preview.ts";
import { useRoving } from "../ui/roving.ts";
import { SelectionBar, useForEach, useSelection } from "../ui/selection.tsx";
import { FullName } from "../ui/session-head.tsx";
import { FreshRows, useSteady } from "../ui/steady.tsx";
import { threadOf } from "../ui/theme.ts";
import { ago, duration, fullTime } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import styles from "./outbox-tab.module.css";

type Message = Result<"outbox.list">["messages"][number];
export type OutboxShown = "undelivered" | "delivered" | "all";

const shownStates: Record<OutboxShown, NonNullable<Params<"outbox.list">["states"]> | null> = {
  undelivered: ["queued", "dead"],
  delivered: ["delivered"],
  all: null,
};
const emptyTexts: Record<OutboxShown, string> = {
  undelivered: "No channel messages are waiting for delivery.",
  delivered: "No messages have been delivered yet.",
  all: "No messages have been sent to a channel yet.",
};
const stateWords: Record<Message["state"], string> = {
  queued: "queued",
  delivered: "delivered",
  dead: "failed permanently",
  dropped: "discarded",
};

const maxMessages = 500;

export function useOutbox(shown: OutboxShown) {
  const { client } = useGateway();
  const states = shownStates[shown];
  useRefresh(["outbox.list"], ({ event }) => event.startsWith("outbox."));
  return useCall(
    "outbox.list",
    {
      ...(states === null ? {} : { states }),
      limit: maxMessages,
      ...usersParam(client),
    },
    { keepsPrevious: true },
  );
}

/** `/runs?tab=outbox&show=`: messages to channels, with permanent failures first. */
export function OutboxTab({ shown }: { readonly shown: OutboxShown }) {
  const change = useChange();
  const offline = useOffline();
  const { data, error } = useOutbox(shown);
  const names = useSessionNames();
  const now = useNow();
  const all = useMemo(
    () => (data?.messages ?? []).toSorted(byUrgency).map((message) => ({ id: message.outboxId, message })),
    [data],
  );
  const steady = useSteady(all);
  const { items } = steady;
  const ids = useMemo(() => items.map(({ id }) => id), [items]);
  const roving = useRoving(ids);
  const selection = useSelection(ids);
  const { forEach, isBusy, error: failure, clearError } = useForEach<Message>();
  const may = { retry: useMay("outbox.retry"), discard: useMay("outbox.drop") };
  const chosen = items
    .filter(({ id }) => selection.ids.has(id) && !steady.isGone(id))
    .map(({ message }) => message);
  const toRetry = may.retry ? chosen.filter(({ state }) => state === "dead") : [];
  const toDiscard = may.discard ? chosen.filter(({ state }) => state === "dead" || state === "queued") : [];
  const retry = (messages: readonly Message[]) =>
    forEach(messages, (message) =>
      change("outbox.retry", { outboxId: message.outboxId, ...userParam(message) }),
    );
  const discard = (messages: readonly Message[]) =>
    forEach(messages, (message) =>
      change("outbox.drop", { outboxId: message.outboxId, ...userParam(message) }),
    );

  const { stop } = roving;
  useKeys({
    x: stop === null ? null : () => selection.toggle(stop),
    r: toRetry.length > 0 ? () => void retry(toRetry) : null,
  });

  if (data === undefined && error !== null) return <ErrorNotice error={error} />;
  if (data === undefined) return <Notice text="Loading…" isBusy />;
  if (items.length === 0) return <Notice text={emptyTexts[shown]} />;
  return (
    <div className={styles.tab} onKeyDown={roving.onKeyDown} {...steady.hold}>
      <FreshRows steady={steady} />
      <div ref={roving.list} className={styles.list}>
        <ul className={styles.rows}>
          {items.map(({ id, message }) => {
            const { sessionKey: key, sessionId, userId, state, target, text } = message;
            return (
              <li
                key={id}
                className={styles.row}
                data-thread={threadOf(sessionId)}
                data-selected={selection.ids.has(id) || undefined}
                data-gone={steady.isGone(id) || undefined}
              >
                <input
                  type="checkbox"
                  checked={selection.ids.has(id)}
                  onChange={() => selection.toggle(id)}
                  aria-label={`Select the message to ${target.channel}`}
                  {...roving.item(id)}
                />
                <span className={styles.thread} aria-hidden />
                <span className={styles.state} data-state={state}>
                  {stateWords[state]}
                </span>
                <span className={styles.target}>
                  {target.channel}
                  {target.to !== undefined && <span> {target.to}</span>}
                </span>
                <span className={styles.text} dir="auto">
                  {previewLine(text, 300)}
                </span>
                <Link
                  className={styles.session}
                  href={sessionPath(placeOf(message))}
                  tabIndex={roving.stop === id ? 0 : -1}
                >
                  <FullName row={names.rowOf({ key, userId })} />
                </Link>
                <time className={styles.time} title={fullTime(message.createdAt)}>
                  {ago(message.createdAt, now)}
                </time>
                <Fate message={message} now={now} />
              </li>
            );
          })}
        </ul>
        {data.messages.length >= maxMessages && (
          <p className={styles.note}>Only {maxMessages} messages are shown.</p>
        )}
      </div>
      <SelectionBar selection={selection} error={failure} onDismiss={clearError}>
        {may.retry && (
          <button
            type="button"
            className={buttons.button}
            disabled={toRetry.length === 0 || isBusy}
            onClick={() => void retry(toRetry)}
            {...offline}
          >
            Retry {toRetry.length > 0 && toRetry.length} <Kbd keys="r" />
          </button>
        )}
        {may.discard && (
          <button
            type="button"
            className={buttons.button}
            data-act="discard"
            disabled={toDiscard.length === 0 || isBusy}
            onClick={() => void discard(toDiscard)}
            {...offline}
          >
            Discard {toDiscard.length > 0 && toDiscard.length}
          </button>
        )}
      </SelectionBar>
    </div>
  );
}

/** Explains in one sentence why a message has not been delivered. */
function Fate({ message, now }: { readonly message: Message; readonly now: number }) {
  const { state, attempts, lastError, nextAt, waitsForChannel, app } = message;
  if (state === "delivered" || state === "dropped") return null;
  const tried = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  return (
    <span className={styles.fate} data-state={state}>
      {waitsForChannel === true &&
        `Waiting for a process that serves the channel${app === undefined ? "" : ` (app ${app})`}. `}
      {lastError !== undefined && `${lastError} `}
      {attempts > 0 && `${tried}. `}
      {state === "queued" && attempts === 0 && waitsForChannel !== true && "Waiting for its first delivery."}
      {state === "queued" &&
        nextAt !== undefined &&
        nextAt > now &&
        `The next one is in ${duration(nextAt - now)}.`}
    </span>
  );
}

function byUrgency(a: Message, b: Message): number {
  return Number(b.state === "dead") - Number(a.state === "dead") || b.createdAt - a.createdAt;
}
