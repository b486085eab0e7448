import { present } from "../../../core/present.ts";
import type { HandlersOf, SkeinDeps } from "../../calls/contract.ts";
import { shownTo } from "./shown.ts";

/** Messages on their way to channels. */
export function outboxHandlers(deps: SkeinDeps): HandlersOf<"outbox.list" | "outbox.retry" | "outbox.drop"> {
  const { skein } = deps;
  return {
    "outbox.list": async ({ states, limit }, call) => {
      const rows = await skein.outbox(present({ states, limit }), call.userId);
      return { count: rows.length, messages: rows.map(shownTo(deps, call).outbox) };
    },
    "outbox.retry": async ({ outboxId }, call) =>
      shownTo(deps, call).outbox(await skein.settleOutbox(outboxId, "retry", call.userId)),
    "outbox.drop": async ({ outboxId }, call) =>
      shownTo(deps, call).outbox(await skein.settleOutbox(outboxId, "drop", call.userId)),
  };
}
