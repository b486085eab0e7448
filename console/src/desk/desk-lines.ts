import { useMemo, useRef } from "react";
import type { Approval, DeskPart, SessionRow } from "../live/desk.ts";
import { idOf, partOf } from "../live/desk.ts";

const partNames: Record<DeskPart, string> = { "needs-you": "Needs you", working: "Working", done: "Done" };

export type Line =
  | { readonly kind: "head"; readonly id: string; readonly name: string; readonly count: number }
  | {
      readonly kind: "row";
      readonly id: string;
      readonly row: SessionRow;
      readonly part: DeskPart;
      readonly approvals: number;
    }
  | { readonly kind: "approval"; readonly id: string; readonly approval: Approval };

/** The desk as lines: the parts in order, each with its sessions, and with their approvals if there is room for them. */
export function deskLines(
  rows: readonly SessionRow[],
  approvals: readonly Approval[],
  hasApprovals = false,
): readonly Line[] {
  const asked = Map.groupBy(approvals, ({ sessionKey, userId }) =>
    idOf({ key: sessionKey, ...(userId === undefined ? {} : { userId }) }),
  );
  const waiting = new Set(asked.keys());
  const parts = Map.groupBy(rows, (row) => partOf(row, waiting));
  return (["needs-you", "working", "done"] as const).flatMap((part): Line[] => {
    const members = parts.get(part) ?? [];
    if (members.length === 0) return [];
    return [
      { kind: "head", id: part, name: partNames[part], count: members.length },
      ...members.flatMap((row): Line[] => {
        const id = idOf(row);
        const open = asked.get(id) ?? [];
        const line: Line = { kind: "row", id, row, part, approvals: open.length };
        if (!hasApprovals) return [line];
        return [
          line,
          ...open.map((approval): Line => ({ kind: "approval", id: approval.approvalId, approval })),
        ];
      }),
    ];
  });
}

/** While the pointer or the focus is inside, lines keep their places; new ones wait at the end. */
export function useSteadyLines(lines: readonly Line[], isHeld: boolean): readonly Line[] {
  const held = useRef<readonly Line[] | null>(null);
  if (!isHeld) held.current = null;
  else held.current ??= lines;
  const order = held.current;
  return useMemo(() => {
    if (order === null) return lines;
    const current = new Map(lines.map((line) => [line.id, line]));
    const kept = order.flatMap((line) => {
      const now = current.get(line.id);
      current.delete(line.id);
      return now === undefined ? [] : [now];
    });
    return [...kept, ...[...current.values()].filter(({ kind }) => kind !== "head")];
  }, [lines, order]);
}
