import { useMemo } from "react";
import type { Approval, DeskPart } from "../live/desk.ts";
import { isFinished, partOf } from "../live/desk.ts";
import type { Fold } from "../live/finished-children.ts";
import { findHosts, foldNested, nest } from "../live/finished-children.ts";
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
  /** The row under which it is nested. */
  readonly host: string | null;
  readonly row: SessionRow;
  readonly approvalCount: number;
};
type ApprovalLine = {
  readonly kind: "approval";
  readonly id: string;
  readonly part: DeskPart;
  readonly host: null;
  readonly approval: Approval;
};
type HeadLine = {
  readonly kind: "head";
  readonly id: string;
  readonly part: DeskPart;
  readonly name: string;
  readonly count: number;
};
export type Line = HeadLine | RowLine | ApprovalLine | Fold;

export interface DeskView {
  readonly lines: readonly Line[];
  readonly steady: Steady<unknown>;
}

interface DeskLinesOptions {
  readonly hasApprovals?: boolean;
  /** If set, finished sub-agents are nested under their parents. Lists the open folds. All others are closed. */
  readonly openFolds?: ReadonlySet<string>;
  /** A row that stays visible in a closed fold. */
  readonly openId?: string | null;
}

/**
 * The desk as lines with stable positions: the groups in order, each with its sessions and, if requested, their
 * approvals.
 */
export function useDeskLines(
  rows: readonly SessionRow[],
  approvals: readonly Approval[],
  { hasApprovals = false, openFolds, openId = null }: DeskLinesOptions = {},
): DeskView {
  const isNested = openFolds !== undefined;
  const steady = useSteady(
    useMemo(
      () => toLines(rows, approvals, hasApprovals, isNested),
      [rows, approvals, hasApprovals, isNested],
    ),
    inPart,
  );
  const lines = useMemo(
    () => withHeads(steady.items, openFolds ?? new Set(), new Set(openId === null ? [] : [openId])),
    [steady.items, openFolds, openId],
  );
  // Nested rows do not move the others, because they are inside a fold.
  const fresh = useMemo(() => steady.fresh.filter(({ host }) => host === null), [steady.fresh]);
  return { lines, steady: { ...steady, fresh } };
}

function toLines(
  rows: readonly SessionRow[],
  approvals: readonly Approval[],
  hasApprovals: boolean,
  isNested: boolean,
): readonly (RowLine | ApprovalLine)[] {
  const asked = Map.groupBy(approvals, (approval) => idOf(placeOf(approval)));
  const waiting = new Set(asked.keys());
  // The session that asked first comes first. A row can arrive before its approval.
  const turns = new Map([...asked.keys()].map((id, index) => [id, index]));
  const turnOf = (row: SessionRow) => turns.get(idOf(row)) ?? turns.size;
  const hosts = isNested ? findHosts(rows, (row) => isFinished(row, waiting)) : new Map<string, string>();
  const parts = Map.groupBy(rows, (row) => partOf(row, waiting));
  const lines = (["needs-you", "working", "done"] as const).flatMap((part) =>
    // Failed sessions come first in their group.
    (parts.get(part) ?? [])
      .toSorted((a, b) => turnOf(a) - turnOf(b) || failed(b) - failed(a))
      .flatMap((row): (RowLine | ApprovalLine)[] => {
        const id = idOf(row);
        const open = asked.get(id) ?? [];
        const host = hosts.get(id) ?? null;
        const line: RowLine = { kind: "row", id, part, host, row, approvalCount: open.length };
        if (!hasApprovals) return [line];
        return [
          line,
          ...open.map(
            (approval): ApprovalLine => ({
              kind: "approval",
              id: approval.approvalId,
              part,
              host: null,
              approval,
            }),
          ),
        ];
      }),
  );
  return nest(lines);
}

function failed({ state }: SessionRow): number {
  return state === "failed" ? 1 : 0;
}

/** While the rows are held, a row that changes keeps its group and its nesting. */
function inPart<T extends RowLine | ApprovalLine>(now: T, { part, host }: T): T {
  return { ...now, part, host };
}

function withHeads(
  items: readonly (RowLine | ApprovalLine)[],
  openFolds: ReadonlySet<string>,
  kept: ReadonlySet<string>,
): readonly Line[] {
  // A nested row belongs to the group of its host.
  let part: DeskPart = "done";
  const parts = Map.groupBy(items, (item) => {
    if (item.host === null) part = item.part;
    return part;
  });
  return [...parts].flatMap(([part, members]): Line[] => {
    const count = members.filter(({ kind, host }) => kind === "row" && host === null).length;
    const head: HeadLine = { kind: "head", id: part, part, name: partNames[part], count };
    return [head, ...foldNested<RowLine | ApprovalLine>(members, openFolds, kept)];
  });
}
