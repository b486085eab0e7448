import { useMemo } from "react";
import type { Approval, DeskPart } from "../live/desk.ts";
import { partOf } from "../live/desk.ts";
import type { SessionRow } from "../live/session-row.ts";
import { idOf } from "../live/session-row.ts";
import { placeOf } from "../paths.ts";
import type { Steady } from "../ui/steady.tsx";
import { useSteady } from "../ui/steady.tsx";

const partNames: Record<DeskPart, string> = { "needs-you": "Needs you", working: "Working", done: "Done" };

export type RowLine = {
  readonly kind: "row";
  readonly id: string;
  readonly part: DeskPart;
  readonly row: SessionRow;
  readonly approvalCount: number;
};
type ApprovalLine = {
  readonly kind: "approval";
  readonly id: string;
  readonly part: DeskPart;
  readonly approval: Approval;
};
type HeadLine = {
  readonly kind: "head";
  readonly id: string;
  readonly part: DeskPart;
  readonly name: string;
  readonly count: number;
};
export type Line = HeadLine | RowLine | ApprovalLine;

export interface DeskView {
  readonly lines: readonly Line[];
  readonly steady: Steady<unknown>;
}

/**
 * The desk as lines with stable positions: the groups in order, each with its sessions and, if requested, their
 * approvals.
 */
export function useDeskLines(
  rows: readonly SessionRow[],
  approvals: readonly Approval[],
  { hasApprovals = false }: { readonly hasApprovals?: boolean } = {},
): DeskView {
  const steady = useSteady(
    useMemo(() => toLines(rows, approvals, hasApprovals), [rows, approvals, hasApprovals]),
    inPart,
  );
  const lines = useMemo(() => withHeads(steady.items), [steady.items]);
  return { lines, steady };
}

function toLines(
  rows: readonly SessionRow[],
  approvals: readonly Approval[],
  hasApprovals: boolean,
): readonly (RowLine | ApprovalLine)[] {
  const asked = Map.groupBy(approvals, (approval) => idOf(placeOf(approval)));
  const waiting = new Set(asked.keys());
  const parts = Map.groupBy(rows, (row) => partOf(row, waiting));
  return (["needs-you", "working", "done"] as const).flatMap((part) =>
    // Failed sessions come first in their group.
    (parts.get(part) ?? [])
      .toSorted((a, b) => failed(b) - failed(a))
      .flatMap((row): (RowLine | ApprovalLine)[] => {
        const id = idOf(row);
        const open = asked.get(id) ?? [];
        const line: RowLine = { kind: "row", id, part, row, approvalCount: open.length };
        if (!hasApprovals) return [line];
        return [
          line,
          ...open.map(
            (approval): ApprovalLine => ({ kind: "approval", id: approval.approvalId, part, approval }),
          ),
        ];
      }),
  );
}

function failed({ state }: SessionRow): number {
  return state === "failed" ? 1 : 0;
}

function inPart<T extends RowLine | ApprovalLine>(now: T, { part }: T): T {
  return { ...now, part };
}

function withHeads(items: readonly (RowLine | ApprovalLine)[]): readonly Line[] {
  const parts = Map.groupBy(items, ({ part }) => part);
  return [...parts].flatMap(([part, members]): Line[] => {
    const count = members.filter(({ kind }) => kind === "row").length;
    return [{ kind: "head", id: part, part, name: partNames[part], count }, ...members];
  });
}
