import type { KeyboardEvent } from "react";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Result } from "skein/client";
import { FinishedFold } from "../desk/desk-list.tsx";
import { useDesk } from "../frame.tsx";
import { isFinished } from "../live/desk.ts";
import { findHosts, foldNested, nest } from "../live/finished-children.ts";
import { useSessionNames } from "../live/session-names.ts";
import { idOf } from "../live/session-row.ts";
import { userParam } from "../paths.ts";
import { useOpenFolds } from "../ui/foldable.tsx";
import { threadOf } from "../ui/theme.ts";
import styles from "./access-matrix.module.css";

type AccessAction = Result<"access.matrix">["allowed"][number][number][number];

/** In the order of a cell's strands, from the top. */
const actions = ["list", "history", "send", "status"] as const satisfies readonly AccessAction[];

export const actionWords: Record<AccessAction, string> = {
  list: "list",
  history: "read",
  send: "message",
  status: "inspect",
};

/** Formats a list as `a, b and c`. */
function joinWords(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

interface Place {
  readonly row: number;
  readonly column: number;
}

interface Pair {
  readonly from: string;
  readonly to: string;
}

interface AccessMatrixProps {
  readonly matrix: Result<"access.matrix">;
  readonly userId: string | null;
  readonly shown: Pair | null;
  readonly onOpen: (pair: Pair) => void;
}

const moves: Readonly<Record<string, readonly [down: number, right: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
  PageUp: [-Infinity, 0],
  PageDown: [Infinity, 0],
};

/**
 * Returns the matrix's sessions. Finished sub-agents are folded under their parents, except the sessions of the pair.
 */
function useMatrixLines({ matrix: { sessions }, userId, shown }: Omit<AccessMatrixProps, "onOpen">) {
  const { desk } = useDesk();
  const [opened, toggle] = useOpenFolds("matrix");
  // A session that finishes later keeps its position.
  const items = useMemo(() => {
    const found = sessions.map(({ key }) => desk.rowOf({ key, ...userParam({ userId }) }));
    const hosts = findHosts(
      found.filter((row) => row !== null),
      (row) => isFinished(row),
    );
    const all = sessions.map((session, index) => {
      const row = found[index] ?? null;
      const id = row === null ? session.key : idOf(row);
      return { kind: "session" as const, id, host: hosts.get(id) ?? null, session, index };
    });
    return nest(all);
  }, [sessions, desk, userId]);
  const pair = items.filter(({ session: { key } }) => key === shown?.from || key === shown?.to);
  const lines = foldNested(items, opened, new Set(pair.map(({ id }) => id)));
  return { lines, toggle, visible: lines.filter((line) => line.kind === "session") };
}

/**
 * Requesters are rows, and targets are columns. Each cell has four strands, one for each action. A missing strand is
 * shown as a dot.
 */
export function AccessMatrix({ onOpen, ...props }: AccessMatrixProps) {
  const {
    matrix: { allowed },
    userId,
    shown,
  } = props;
  const names = useSessionNames();
  const { lines, visible, toggle } = useMatrixLines(props);
  const table = useRef<HTMLTableElement>(null);
  const [focusedPair, setFocusedPair] = useState(shown);
  const [pointedPair, setPointedPair] = useState<Pair | null>(null);
  const focused = placeOf(visible, focusedPair);
  const at = placeOf(visible, pointedPair ?? focusedPair);
  const nameOf = (place: number) => {
    const session = visible[place]?.session;
    return session === undefined ? "" : names.nameOf({ ...session, userId: userId ?? undefined });
  };
  const allowedAt = (row: number, column: number) =>
    allowed[visible[row]?.index ?? -1]?.[visible[column]?.index ?? -1] ?? [];
  const sentence = (row: number, column: number) => {
    if (row === column) return `${nameOf(row)} itself`;
    const words = allowedAt(row, column).map((action) => actionWords[action]);
    return words.length === 0
      ? `${nameOf(row)} cannot see ${nameOf(column)}`
      : `${nameOf(row)} may ${joinWords(words)} ${nameOf(column)}`;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = moves[event.key];
    if (move === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const clamp = (value: number) => Math.max(0, Math.min(visible.length - 1, value));
    const [row, column] = [clamp(focused.row + move[0]), clamp(focused.column + move[1])];
    table.current?.querySelector<HTMLElement>(`[data-place="${row} ${column}"]`)?.focus();
  };
  return (
    <>
      <p className={styles.sentence} aria-live="off">
        {sentence(at.row, at.column)}
      </p>
      <div className={styles.scroller}>
        <table
          ref={table}
          className={styles.matrix}
          aria-label="Which sessions can see which others"
          onKeyDown={onKeyDown}
          onPointerLeave={() => setPointedPair(null)}
        >
          <thead>
            <tr>
              <td className={styles.corner}>
                <span>asks for →</span>
              </td>
              {visible.map(({ session }, column) => (
                <th
                  key={session.key}
                  scope="col"
                  data-thread={threadOf(session.sessionId)}
                  data-at={column === at.column || undefined}
                  title={session.key}
                >
                  <span>{nameOf(column)}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => {
              if (line.kind === "fold")
                return (
                  <tr key={line.id}>
                    <th scope="row" className={styles.fold}>
                      <FinishedFold fold={line} onToggle={toggle} />
                    </th>
                    <td colSpan={visible.length} />
                  </tr>
                );
              const { session } = line;
              const row = visible.indexOf(line);
              return (
                <tr key={session.key} data-thread={threadOf(session.sessionId)}>
                  <th
                    scope="row"
                    data-at={row === at.row || undefined}
                    data-nested={line.host !== null || undefined}
                    title={session.key}
                  >
                    <span>{nameOf(row)}</span>
                  </th>
                  {visible.map(({ session: target }, column) => (
                    <Cell
                      key={target.key}
                      place={{ row, column }}
                      pair={{ from: session.key, to: target.key }}
                      label={sentence(row, column)}
                      allowed={allowedAt(row, column)}
                      isFocusable={row === focused.row && column === focused.column}
                      isShown={shown?.from === session.key && shown.to === target.key}
                      onFocus={setFocusedPair}
                      onPoint={setPointedPair}
                      onOpen={onOpen}
                    />
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Returns the position of a pair, or of the first two sessions if the pair is not in the matrix. */
function placeOf(
  lines: readonly { readonly session: { readonly key: string } }[],
  pair: AccessMatrixProps["shown"],
): Place {
  const row = lines.findIndex(({ session }) => session.key === pair?.from);
  const column = lines.findIndex(({ session }) => session.key === pair?.to);
  return row < 0 || column < 0 ? { row: 0, column: Math.min(1, lines.length - 1) } : { row, column };
}

function Cell({
  place: { row, column },
  pair,
  label,
  allowed,
  isFocusable,
  isShown,
  onFocus,
  onPoint,
  onOpen,
}: {
  readonly place: Place;
  readonly pair: Pair;
  readonly label: string;
  readonly allowed: readonly AccessAction[];
  readonly isFocusable: boolean;
  readonly isShown: boolean;
  readonly onFocus: (pair: Pair) => void;
  readonly onPoint: (pair: Pair) => void;
  readonly onOpen: (pair: Pair) => void;
}) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isShown) button.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [isShown]);
  return (
    <td>
      <button
        ref={button}
        type="button"
        className={styles.cell}
        data-place={`${row} ${column}`}
        data-may={allowed.join(" ")}
        data-self={row === column || undefined}
        aria-label={label}
        aria-pressed={isShown}
        tabIndex={isFocusable ? 0 : -1}
        onFocus={() => onFocus(pair)}
        onPointerEnter={() => onPoint(pair)}
        onClick={() => onOpen(pair)}
      />
    </td>
  );
}

export function MatrixLegend() {
  return (
    <ol className={styles.legend} aria-label="The strands of a cell, from top to bottom">
      {actions.map((action) => (
        <li key={action}>
          <span className={styles.sample} data-may={action} aria-hidden />
          {actionWords[action]}
        </li>
      ))}
    </ol>
  );
}
