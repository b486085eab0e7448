import { present } from "../../../core/present.ts";
import type { OutboxRow, OutboxState } from "../../../runs/contract.ts";
import type { HandlersOf, SkeinDeps } from "../../calls/contract.ts";
import { shownTo } from "./shown.ts";

/** Messages on their way to channels. */
export function outboxHandlers(deps: SkeinDeps): HandlersOf<"outbox.list" | "outbox.retry" | "outbox.drop"> {
  const { skein } = deps;
  return {
    "outbox.list": async ({ outboxId, states, limit, allUsers }, call) => {
      const userId = allUsers === true ? undefined : call.userId;
      const rows =
        outboxId === undefined
          ? await skein.outbox(present({ states, limit }), userId)
          : await one(deps, userId, outboxId, states);
      return { count: rows.length, messages: rows.map(shownTo(deps, call).outbox) };
    },
    "outbox.retry": async ({ outboxId }, call) =>
      shownTo(deps, call).outbox(await skein.settleOutbox(outboxId, "retry", call.userId)),
    "outbox.drop": async ({ outboxId }, call) =>
      shownTo(deps, call).outbox(await skein.settleOutbox(outboxId, "drop", call.userId)),
  };
}

async function one(
  { skein }: SkeinDeps,
  userId: string | null | undefined,
  outboxId: string,
  states: readonly OutboxState[] | undefined,
): Promise<readonly OutboxRow[]> {
  const row = await skein.outboxRow(outboxId, userId);
  return row === null || states?.includes(row.state) === false ? [] : [row];
}
