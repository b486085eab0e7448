import type { KeyboardEvent } from "react";
import { useEffect, useRef, useState } from "react";
import type { Result } from "skein/client";
import { useSessionNames } from "../live/session-names.ts";
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

interface AccessMatrixProps {
  readonly matrix: Result<"access.matrix">;
  readonly userId: string | null;
  readonly shown: { readonly from: string; readonly to: string } | null;
  readonly onOpen: (pair: { readonly from: string; readonly to: string }) => void;
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
 * Requesters are rows, and targets are columns. Each cell has four strands, one for each action. A missing strand is
 * shown as a dot.
 */
export function AccessMatrix({ matrix: { sessions, allowed }, userId, shown, onOpen }: AccessMatrixProps) {
  const names = useSessionNames();
  const table = useRef<HTMLTableElement>(null);
  const [focused, setFocused] = useState<Place>(() => placeOf(sessions, shown));
  const [pointed, setPointed] = useState<Place | null>(null);
  const at = pointed ?? focused;
  const nameOf = (index: number) => {
    const session = sessions[index];
    return session === undefined ? "" : names.nameOf({ ...session, userId: userId ?? undefined });
  };
  const sentence = (row: number, column: number) => {
    if (row === column) return `${nameOf(row)} itself`;
    const words = (allowed[row]?.[column] ?? []).map((action) => actionWords[action]);
    return words.length === 0
      ? `${nameOf(row)} may not see ${nameOf(column)}`
      : `${nameOf(row)} may ${joinWords(words)} ${nameOf(column)}`;
  };
  const open = (row: number, column: number) => {
    const from = sessions[row]?.key;
    const to = sessions[column]?.key;
    if (from !== undefined && to !== undefined) onOpen({ from, to });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = moves[event.key];
    if (move === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const clamp = (value: number) => Math.max(0, Math.min(sessions.length - 1, value));
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
          onPointerLeave={() => setPointed(null)}
        >
          <thead>
            <tr>
              <td className={styles.corner}>
                <span>asks for →</span>
              </td>
              {sessions.map((session, column) => (
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
            {sessions.map((session, row) => (
              <tr key={session.key} data-thread={threadOf(session.sessionId)}>
                <th scope="row" data-at={row === at.row || undefined} title={session.key}>
                  <span>{nameOf(row)}</span>
                </th>
                {sessions.map((target, column) => (
                  <Cell
                    key={target.key}
                    place={{ row, column }}
                    label={sentence(row, column)}
                    allowed={allowed[row]?.[column] ?? []}
                    isFocusable={row === focused.row && column === focused.column}
                    isShown={shown?.from === session.key && shown.to === target.key}
                    onFocus={setFocused}
                    onPoint={setPointed}
                    onOpen={open}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Returns the position of a pair, or of the first two sessions if the pair is not in the matrix. */
function placeOf(sessions: Result<"access.matrix">["sessions"], pair: AccessMatrixProps["shown"]): Place {
  const row = sessions.findIndex(({ key }) => key === pair?.from);
  const column = sessions.findIndex(({ key }) => key === pair?.to);
  return row < 0 || column < 0 ? { row: 0, column: Math.min(1, sessions.length - 1) } : { row, column };
}

function Cell({
  place,
  label,
  allowed,
  isFocusable,
  isShown,
  onFocus,
  onPoint,
  onOpen,
}: {
  readonly place: Place;
  readonly label: string;
  readonly allowed: readonly AccessAction[];
  readonly isFocusable: boolean;
  readonly isShown: boolean;
  readonly onFocus: (place: Place) => void;
  readonly onPoint: (place: Place) => void;
  readonly onOpen: (row: number, column: number) => void;
}) {
  const { row, column } = place;
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
        onFocus={() => onFocus(place)}
        onPointerEnter={() => onPoint(place)}
        onClick={() => onOpen(row, column)}
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
